"""Every way a command can end: one sentence, the right exit code, and JSON where it was asked for.

0 done, 1 the answer is no, 2 bad input or usage, 70 our fault, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from calibrant.cli import interruption
from calibrant.cli.output import NothingReads, discard_output, flush, print_json
from calibrant.errors import CalibrantError, TargetUnreachable

__all__ = ["GuardedCommand", "GuardedGroup", "guarded"]

BAD_INPUT, OUR_FAULT, INTERRUPTED = 2, 70, 130


class GuardedGroup(TyperGroup):
    """A group of commands whose failures are told in one sentence."""

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run a command line and leave with its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        run = super().main
        extra |= {"standalone_mode": False}
        sys.exit(guarded(lambda: run(args=words, **extra), words))


class GuardedCommand(TyperCommand):
    """A single command whose failures are reported in one sentence."""

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run a command line and leave with its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        run = super().main
        extra |= {"standalone_mode": False}
        sys.exit(guarded(lambda: run(args=words, **extra), words))


def guarded(run: Callable[[], Any], words: Sequence[str]) -> int:
    """Call `run` and return the exit code; `words` tell how failures are to be shown."""
    try:
        code = run()
        flush()
        return _finished(code)
    except NothingReads:
        discard_output()
        return 0
    except (KeyboardInterrupt, typer.Abort) as error:
        ended = error.__cause__ or error.__context__
        if isinstance(ended, EOFError) and not interruption.pressed():
            return _failed(ended, words)  # a file that ends too early, which click takes for Ctrl-D
        return _finished(INTERRUPTED)
    except Exception as error:
        # A broken-off import raises what it likes; the user only pressed Ctrl-C.
        return _finished(INTERRUPTED) if interruption.pressed() else _failed(error, words)


def _finished(code: Any) -> int:
    if code == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return code if isinstance(code, int) else 0


def _failed(error: Exception, words: Sequence[str]) -> int:
    kind, message, code = _described(error, words)
    if code == OUR_FAULT and not _asked("--debug", words):
        message = f"{message}; the traceback is in {_traceback_file(error)}."
    if _asked("--debug", words):
        traceback.print_exception(error)
    try:
        if _asked("--json", words):
            print_json({"error": {"kind": kind, "message": message}})
            flush()
        else:
            print(f"error: {message}", file=sys.stderr)
    except (NothingReads, OSError, CalibrantError):
        discard_output()  # stdout is what broke, and the exit code still tells
        if kind == "output":
            print(f"error: {message}", file=sys.stderr)
    return code


def _described(error: Exception, words: Sequence[str]) -> tuple[str, str, int]:
    """Give an error its kind, its sentence and its exit code."""
    if isinstance(error, CalibrantError):
        code = 1 if isinstance(error, TargetUnreachable) else BAD_INPUT
        return error.kind, _one_line(error), code
    if hasattr(error, "format_message"):  # how Typer reports a wrong command line
        text = _one_line(error.format_message()).rstrip(".")
        command = " ".join(["calibrant", *_asked_for(error, words), "--help"])
        return "usage", f"{text}: see '{command}'.", BAD_INPUT
    if isinstance(error, MemoryError):
        remedy = "try --stream" if "evaluate" in words else "give fewer rows"
        return "memory", f"there is not enough memory for this: {remedy}.", BAD_INPUT
    if isinstance(error, OSError):
        what = f" ({error.filename})" if error.filename else ""
        reason = error.strerror or _one_line(error)
        return "file", f"the system refused a file operation: {reason}{what}.", BAD_INPUT
    reason = f"{type(error).__name__}: {_one_line(error)}".rstrip(".: ")
    return "internal", f"this is a fault in calibrant ({reason})", OUR_FAULT


def _asked_for(error: Any, words: Sequence[str]) -> list[str]:
    """Return the verb of a command line that Typer refused, with that of its group."""
    context = getattr(error, "ctx", None)
    while context is not None and context.parent is not None:
        context = context.parent
    within, found = getattr(context, "command", None), []
    for word in (word for word in words if not word.startswith("-")):
        within = getattr(within, "commands", {}).get(word)
        if within is None:
            break
        found.append(word)
    return found


def _asked(flag: str, words: Sequence[str]) -> bool:
    """Tell whether a flag was given; needed where parsing itself has failed."""
    given = words[: list(words).index("--")] if "--" in words else words
    variable = os.environ.get(f"CALIBRANT_{flag[2:].upper()}", "")
    return flag in given or variable.lower() in ("1", "true", "yes", "on", "t", "y")


def _traceback_file(error: Exception) -> str:
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="calibrant-", suffix=".log", delete=False, encoding="utf-8"
        ) as file:
            file.write("".join(traceback.format_exception(error)))
    except OSError:
        return "no file, for none could be written (--debug shows it)"
    return file.name


def _one_line(text: object) -> str:
    return " ".join(str(text).split())
