"""Output paths of verbs that write a JSON file and optionally an HTML report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from calibrant.errors import InputError


def check_outputs(
    out: Path | None, html: Path | None, inputs: Iterable[Path], *, what: str
) -> Path:
    """Check the output paths before any work is done."""
    from calibrant.files.atomic_write import check_writable

    if out is None:
        raise InputError(f"-o is missing: name the file for the {what}, like -o {what}.json.")
    check_writable(out, name="-o")
    if out.suffix.lower() != ".json":
        raise InputError(f"-o {out}: a {what} is saved as JSON: use a name ending in .json.")
    if html is not None:
        check_writable(html, name="--html")
    taken = {file.resolve() for file in inputs}
    for flag, path in (("-o", out), ("--html", html)):
        if path is not None and path.resolve() in taken:
            raise InputError(f"{flag} {path} is also an input or output file: choose another name.")
        taken |= {out.resolve()}
    return out
