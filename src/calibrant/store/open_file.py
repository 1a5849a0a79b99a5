"""Detection of a SQLite file that was removed or replaced while open.

Writes to such a file, or to a removed write-ahead log, would be lost.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

__all__ = ["is_current_file", "remember_file"]

_FILE, _LOG = "calibrant_file", "calibrant_log"


def remember_file(
    info: MutableMapping[Any, Any], connection: sqlite3.Connection, path: Path
) -> None:
    """Remember the file and log that a new connection has open."""
    connection.execute("PRAGMA schema_version").fetchone()  # opens the log too
    info[_FILE] = _identity(path)
    info[_LOG] = _identity(_log_path(path))


def is_current_file(info: MutableMapping[Any, Any], path: Path) -> bool:
    """Whether the open file and log are still those at the path."""
    if info[_FILE] is None or _identity(path) != info[_FILE]:
        return False
    if info[_LOG] is None:  # opened before the log existed
        info[_LOG] = _identity(_log_path(path))
        return True
    return bool(_identity(_log_path(path)) == info[_LOG])


def _log_path(path: Path) -> str:
    return f"{path}-wal"


def _identity(path: Path | str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
