"""SIGINT and SIGTERM handlers that unwind, so that no partial file is left behind."""

from __future__ import annotations

import signal
import sys
from typing import Any

_signals: list[int] = []


def install() -> None:
    """Install the handlers; only for a process of the command line."""
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _terminate)


def check() -> None:
    """Raise an interruption again that an extension module swallowed during its import."""
    if was_interrupted():
        raise KeyboardInterrupt


def was_interrupted() -> bool:
    """Whether SIGINT was received."""
    return bool(_signals)


def _interrupt(signum: int, frame: Any) -> None:
    _signals.append(signum)
    raise KeyboardInterrupt


def _terminate(signum: int, frame: Any) -> None:
    sys.exit(128 + signum)
