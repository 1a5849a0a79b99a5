"""The outputs of verbs that save one JSON file and may write a page beside it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from calibrant.errors import InputError

__all__ = ["checked_outputs"]


def checked_outputs(
    out: Path | None, html: Path | None, read: Iterable[Path], *, what: str
) -> Path:
    """Check, before any work is done, everything that is going to be written."""
    from calibrant.files.atomic_write import check_writable

    if out is None:
        raise InputError(f"-o is missing: name the file for the {what}, like -o {what}.json.")
    check_writable(out, name="-o")
    if out.suffix.lower() != ".json":
        raise InputError(f"-o {out}: a {what} is saved as JSON, so let the name end in .json.")
    if html is not None:
        check_writable(html, name="--html")
    taken = {file.resolve() for file in read}
    for flag, path in (("-o", out), ("--html", html)):
        if path is not None and path.resolve() in taken:
            raise InputError(
                f"{flag} {path} is a file that is read or written: choose another name."
            )
        taken |= {out.resolve()}
    return out
