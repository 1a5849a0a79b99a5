"""Two folders change places: in one step where the system can, else in two renames."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

__all__ = ["ASIDE", "exchanged", "synced", "take_place"]

ASIDE = ".aside"
"""How the name ends under which a folder stands aside between two renames."""

_HERE = -100
"""AT_FDCWD of Linux: paths are taken from the folder the process is in."""

_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux."""


def exchanged(first: Path, second: Path) -> bool:
    """Let two folders change places in one step; False where that cannot be, and nothing changed.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> for name in ("a", "b"):
    ...     (place / name).mkdir()
    ...     _ = (place / name / "file.txt").write_text(name)
    >>> done = exchanged(place / "a", place / "b")
    >>> (place / "b/file.txt").read_text() == ("a" if done else "b")
    True
    """
    library = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    rename = getattr(library, "renameat2", None)
    if rename is None:
        return False
    ends = (os.fsencode(first), os.fsencode(second))
    return bool(rename(_HERE, ends[0], _HERE, ends[1], _EXCHANGE) == 0)


def take_place(draft: Path, folder: Path, *, refuse: Callable[[Path], None]) -> Path:
    """Put a complete folder in the place of another, and return where the other one is now."""
    if exchanged(draft, folder):
        try:
            refuse(draft)
        except BaseException:
            if not exchanged(draft, folder):  # it was possible a moment ago
                os.rename(draft, draft.with_name(f"unknown{draft.name}"))  # let nobody remove it
            raise
        return draft
    aside = draft.with_name(f"{draft.name}{ASIDE}")
    os.rename(folder, aside)
    try:
        refuse(aside)
        os.rename(draft, folder)
    except BaseException:
        os.rename(aside, folder)
        raise
    return aside


def synced(path: Path) -> None:
    """Have a file on the disk, or the names in a folder, where the file system lets us wait."""
    if path.is_dir():
        with suppress(OSError):  # not all systems can, and it is no reason to fail
            _sync(path)
    else:
        _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
