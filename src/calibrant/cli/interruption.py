"""Ctrl-C and a polite kill: both unwind, so that no half-written file stays behind."""

from __future__ import annotations

import signal
import sys
from typing import Any

__all__ = ["check", "install", "pressed"]

_pressed: list[int] = []


def install() -> None:
    """Answer SIGINT and SIGTERM by unwinding; for a process that is ours alone."""
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _terminate)


def check() -> None:
    """Raise again an interruption that was swallowed.

    An extension module that is being imported when the signal comes drops the exception; without
    this, the user's Ctrl-C would be lost and the command would go on to the end.
    """
    if pressed():
        raise KeyboardInterrupt


def pressed() -> bool:
    """Whether the user has asked to stop, whatever became of it."""
    return bool(_pressed)


def _interrupt(signum: int, frame: Any) -> None:
    _pressed.append(signum)
    raise KeyboardInterrupt


def _terminate(signum: int, frame: Any) -> None:
    sys.exit(128 + signum)
