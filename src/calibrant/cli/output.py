"""Where commands print: results to stdout, everything else to stderr."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Any

from calibrant.cli import interruption
from calibrant.errors import CalibrantError

__all__ = ["NothingReads", "OutputError", "color", "discard_output", "flush", "print_json", "say"]


class NothingReads(Exception):
    """Whoever read our output has gone, as in `calibrant ... | head`."""


class OutputError(CalibrantError):
    """What was to be printed could not be written."""

    kind = "output"


def say(text: str) -> None:
    """Print a line of the result."""
    interruption.check()
    _write(f"{text}\n")


def print_json(content: Any) -> None:
    """Print one strict JSON object: null and never NaN."""
    _write(json.dumps(content, allow_nan=False, ensure_ascii=False, indent=2) + "\n")


def flush() -> None:
    """Hand over what is still in the buffer, while a failure can still be told."""
    _write("")


def discard_output() -> None:
    """Let the interpreter's own flush at exit go nowhere, for it could only fail again."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # a stdout without a file behind it, as in tests
        return


def width() -> int:
    """Columns to print in: those of the terminal, or 100 for a file."""
    return min(140, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 100


def color() -> bool:
    """Whether to colour: only on a terminal whose user did not say no."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _write(text: str) -> None:
    try:
        sys.stdout.write(_printable(text))
        sys.stdout.flush()
    except BrokenPipeError:
        raise NothingReads from None
    except OSError as error:
        raise OutputError(
            f"the output cannot be written: {error.strerror}: make room or print elsewhere."
        ) from None


def _printable(text: str) -> str:
    """Replace what the terminal's encoding cannot show."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)
