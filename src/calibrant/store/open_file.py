"""Whether a SQLite file that is open is still the one at its path.

A file that was removed or replaced can still be written by who has it open, and what goes there is
lost. So is what goes to a write-ahead log that was removed.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

__all__ = ["is_at_its_path", "remember"]

_FILE, _LOG = "calibrant_file", "calibrant_log"


def remember(info: MutableMapping[Any, Any], connection: sqlite3.Connection, path: Path) -> None:
    """Note which file a new connection has open."""
    connection.execute("PRAGMA schema_version").fetchone()  # opens the log too
    info[_FILE] = _identity(path)
    info[_LOG] = _identity(_log_of(path))


def is_at_its_path(info: MutableMapping[Any, Any], path: Path) -> bool:
    """Tell whether what a connection has open is what others find at the path."""
    if info[_FILE] is None or _identity(path) != info[_FILE]:
        return False
    if info[_LOG] is None:  # it was opened before the file had a log
        info[_LOG] = _identity(_log_of(path))
        return True
    return bool(_identity(_log_of(path)) == info[_LOG])


def _log_of(path: Path) -> str:
    return f"{path}-wal"


def _identity(path: Path | str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
