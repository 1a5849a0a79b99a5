"""Atomic exchange of two folders, with a fallback to two renames."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ASIDE = ".aside"  # Suffix of a folder that was moved aside between two renames

_HERE = -100  # AT_FDCWD on Linux: paths are relative to the current folder

_EXCHANGE = 2  # RENAME_EXCHANGE on Linux


def exchange_folders(first: Path, second: Path) -> bool:
    """Exchange two folders atomically; return False, without any change, if unsupported."""
    library = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    rename = getattr(library, "renameat2", None)
    if rename is None:
        return False
    ends = (os.fsencode(first), os.fsencode(second))
    return bool(rename(_HERE, ends[0], _HERE, ends[1], _EXCHANGE) == 0)


def replace_folder(draft: Path, folder: Path, *, refuse: Callable[[Path], None]) -> Path:
    """Replace a folder by a complete draft, and return the new path of the old folder."""
    if exchange_folders(draft, folder):
        try:
            refuse(draft)
        except BaseException:
            if not exchange_folders(draft, folder):  # it worked a moment ago
                os.rename(
                    draft, draft.with_name(f"unknown{draft.name}")
                )  # protects it from removal
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


def sync_to_disk(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk."""
    if path.is_dir():
        with suppress(OSError):  # not supported everywhere
            _sync(path)
    else:
        _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
