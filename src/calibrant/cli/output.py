"""Printing: results to stdout, everything else to stderr."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from calibrant.cli import interruption
from calibrant.errors import CalibrantError, InputError


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


class BrokenStdout(Exception):
    """The reader of stdout is gone, as in `calibrant ... | head`."""


class OutputError(CalibrantError):
    """Writing to stdout failed."""

    kind = "output"


def echo(text: str) -> None:
    """Print a line of the result."""
    interruption.check()
    _write(f"{text}\n")


def print_json(content: Any) -> None:
    """Print one strict JSON object: null and never NaN."""
    _write(json.dumps(content, allow_nan=False, ensure_ascii=False, indent=2) + "\n")


def flush() -> None:
    """Flush stdout while an error can still be reported."""
    _write("")


def discard_output() -> None:
    """Redirect stdout to the null device, because the flush at exit would fail again."""
    try:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
    except (OSError, ValueError):  # a stdout without a file behind it, as in tests
        return


def width() -> int:
    """Width of the terminal, or 100 for a file."""
    return min(140, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 100


def color() -> bool:
    """Whether to print colours: on a terminal without NO_COLOR."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _write(text: str) -> None:
    try:
        sys.stdout.write(_printable(text))
        sys.stdout.flush()
    except BrokenPipeError:
        raise BrokenStdout from None
    except OSError as error:
        raise OutputError(
            f"the output cannot be written: {error.strerror}: free space or redirect it."
        ) from None


def _printable(text: str) -> str:
    """Replace characters that the encoding of stdout lacks."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)
