"""Exclusive locks on folders, released when the process ends."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from calibrant.errors import InputError

LOCK = ".lock"  # Name of the lock file in the locked folder

_TRIES, _PAUSE = 3, 0.05
"""Attempts, and seconds between them: a run that is just ending still holds its lock."""

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


def try_lock(folder: Path, mode: int | None = None) -> int | None:
    """Try to lock a folder and return the file handle; closing it releases the lock.

    Returns None if another process holds the lock or has just removed the folder or the lock file.
    Raises ImportError on systems without file locks.
    """
    import fcntl

    if mode is not None:
        with suppress(FileExistsError):
            os.mkdir(folder, mode)
    path = folder / LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:  # the previous holder removed its folder
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


@contextmanager
def exclusive_folder(folder: Path, *, option: str = "--out") -> Iterator[None]:
    """Create and lock the folder of a run; remove it afterwards if it is empty.

    A second run in the same folder raises `InputError`, because two runs would remove each other's
    checkpoints. The lock ends with the process, also if it is killed. Without support for file
    locks, nothing is locked.
    """
    created: list[Path] = []
    try:
        handle = _acquire_lock(folder, option, created)
        try:
            yield
        finally:
            if handle is not None:
                with suppress(OSError):
                    os.unlink(folder / LOCK)
                os.close(handle)
    finally:
        for path in created:
            with suppress(OSError):  # it is not empty
                os.rmdir(path)


def _acquire_lock(folder: Path, option: str, created: list[Path]) -> int | None:
    """Return the lock handle, or None without file locks; add created folders to `created`."""
    for attempt in range(_TRIES):
        time.sleep(_PAUSE * min(attempt, 1))
        try:
            created += [p for p in (folder, *folder.parents) if not p.exists() and p not in created]
            folder.mkdir(parents=True, exist_ok=True)
            handle = try_lock(folder)
        except ImportError:
            return None
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return None
            raise InputError(
                f"{option} {folder} cannot be created ({error.strerror or error}): choose another "
                "one."
            ) from None
        if handle is not None:
            return handle
    raise InputError(
        f"another run is using {folder}: wait until it has ended, or choose another {option}."
    )
