"""A file that one process at a time holds; a process that ends, however it ends, lets go of it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["LOCK", "taken"]

LOCK = ".lock"
"""What the file is called in the folder that it guards."""


def taken(folder: Path, mode: int | None = None) -> int | None:
    """Take the lock of a folder; closing the handle that is returned lets go of it.

    Returns None where another holds it, or has just taken the folder or the file away; and raises
    ImportError on a system that has no locks of files.

    Parameters
    ----------
    folder : the folder
    mode : that it is made with where it is not there; None where it is
    """
    import fcntl

    if mode is not None:
        with suppress(FileExistsError):
            os.mkdir(folder, mode)
    path = folder / LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:  # the one before us took its folder away
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), os.stat(path)):
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None
