"""Error handling of commands: one-sentence messages, exit codes and JSON errors.

0 done, 1 the answer is no, 2 bad input or usage, 70 our fault, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from calibrant.cli import interruption
from calibrant.cli.output import BrokenStdout, discard_output, flush, print_json
from calibrant.errors import CalibrantError, TargetUnreachable

BAD_INPUT, OUR_FAULT, INTERRUPTED = 2, 70, 130


class GuardedGroup(TyperGroup):
    """Command group that reports failures in one sentence."""

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run a command line and exit with its code."""
        _exit_after(super().main, args, extra)


class GuardedCommand(TyperCommand):
    """Single command that reports failures in one sentence."""

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run a command line and exit with its code."""
        _exit_after(super().main, args, extra)


def _exit_after(
    main: Callable[..., Any], args: Sequence[str] | None, extra: dict[str, Any]
) -> NoReturn:
    arguments = list(sys.argv[1:] if args is None else args)
    options = {**extra, "standalone_mode": False}
    sys.exit(run_guarded(lambda: main(args=arguments, **options), arguments))


def run_guarded(run: Callable[[], Any], args: Sequence[str]) -> int:
    """Call `run` and return the exit code; `args` decide how failures are shown."""
    try:
        code = run()
        flush()
        return _exit_code(code)
    except BrokenStdout:
        discard_output()
        return 0
    except (KeyboardInterrupt, typer.Abort) as error:
        cause = error.__cause__ or error.__context__
        if isinstance(cause, EOFError) and not interruption.was_interrupted():
            return _report_failure(cause, args)  # a truncated file, not Ctrl-D
        return _exit_code(INTERRUPTED)
    except Exception as error:
        # An interrupted import may raise any exception.
        return (
            _exit_code(INTERRUPTED)
            if interruption.was_interrupted()
            else _report_failure(error, args)
        )


def _exit_code(code: Any) -> int:
    if code == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return code if isinstance(code, int) else 0


def _report_failure(error: Exception, args: Sequence[str]) -> int:
    kind, message, code = _describe(error, args)
    if code == OUR_FAULT and not _has_flag("--debug", args):
        message = f"{message}; the traceback is in {_traceback_file(error)}."
    if _has_flag("--debug", args):
        traceback.print_exception(error)
    try:
        if _has_flag("--json", args):
            print_json({"error": {"kind": kind, "message": message}})
            flush()
        else:
            print(f"error: {message}", file=sys.stderr)
    except (BrokenStdout, OSError, CalibrantError):
        discard_output()  # stdout is broken; the exit code remains
        if kind == "output":
            print(f"error: {message}", file=sys.stderr)
    return code


def _describe(error: Exception, args: Sequence[str]) -> tuple[str, str, int]:
    """Return kind, message and exit code of an error."""
    if isinstance(error, CalibrantError):
        code = 1 if isinstance(error, TargetUnreachable) else BAD_INPUT
        return error.kind, _one_line(error), code
    if hasattr(error, "format_message"):  # how Typer reports a wrong command line
        text = _one_line(error.format_message()).rstrip(".")
        command = " ".join(["calibrant", *_command_path(error, args), "--help"])
        return "usage", f"{text}: see '{command}'.", BAD_INPUT
    if isinstance(error, MemoryError):
        remedy = "try --stream" if "evaluate" in args else "use fewer rows"
        return "memory", f"not enough memory: {remedy}.", BAD_INPUT
    if isinstance(error, OSError):
        what = f" ({error.filename})" if error.filename else ""
        reason = error.strerror or _one_line(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason += ", so free some space or write to another disk"
        return "file", f"the system refused a file operation: {reason}{what}.", BAD_INPUT
    reason = f"{type(error).__name__}: {_one_line(error)}".rstrip(".: ")
    return "internal", f"internal error in calibrant ({reason})", OUR_FAULT


def _command_path(error: Any, args: Sequence[str]) -> list[str]:
    """Return the verb, with its group, of a command line that Typer refused."""
    context = getattr(error, "ctx", None)
    while context is not None and context.parent is not None:
        context = context.parent
    group, path = getattr(context, "command", None), []
    for word in (word for word in args if not word.startswith("-")):
        group = getattr(group, "commands", {}).get(word)
        if group is None:
            break
        path.append(word)
    return path


def _has_flag(flag: str, args: Sequence[str]) -> bool:
    """Whether a flag is set; works where parsing has failed."""
    flags = args[: list(args).index("--")] if "--" in args else args
    variable = os.environ.get(f"CALIBRANT_{flag[2:].upper()}", "")
    return flag in flags or variable.lower() in ("1", "true", "yes", "on", "t", "y")


def _traceback_file(error: Exception) -> str:
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="calibrant-", suffix=".log", delete=False, encoding="utf-8"
        ) as file:
            file.write("".join(traceback.format_exception(error)))
    except OSError:
        return "no file, because none could be written (--debug shows it)"
    return file.name


def _one_line(text: object) -> str:
    return " ".join(str(text).split())
