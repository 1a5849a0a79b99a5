"""A folder that one run at a time holds; one that ends, however it ends, lets go of it."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from calibrant.errors import InputError

__all__ = ["LOCK", "alone_in", "taken"]

LOCK = ".lock"
"""What the file is called in the folder that it guards."""

_TRIES, _PAUSE = 3, 0.05
"""A run that is just ending takes its lock away: then the next try finds the folder free."""

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


def taken(folder: Path, mode: int | None = None) -> int | None:
    """Take the lock of a folder; closing the handle that is returned lets go of it.

    Returns None where another holds it, or has just taken the folder or the file away; and raises
    ImportError on a system that has no locks of files.
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


@contextmanager
def alone_in(folder: Path, *, option: str = "--out") -> Iterator[None]:
    """Hold the folder of a run, which is made, and taken away where nothing was put into it.

    A second run is refused at once: two would remove each other's checkpoints. The lock goes with
    the process, so one that was killed leaves none. On a system, or a disk, without locks of files
    nothing is guarded.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp(), "run")
    >>> with alone_in(place), alone_in(place):
    ...     pass
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: another run is at work in ...
    """
    made: list[Path] = []
    try:
        handle = _held(folder, option, made)
        try:
            yield
        finally:
            if handle is not None:
                with suppress(OSError):
                    os.unlink(folder / LOCK)
                os.close(handle)
    finally:
        for place in made:
            with suppress(OSError):  # it is not empty any more
                os.rmdir(place)


def _held(folder: Path, option: str, made: list[Path]) -> int | None:
    """Return the handle of the lock, or None where there are no locks; note what was made."""
    for attempt in range(_TRIES):
        time.sleep(_PAUSE * min(attempt, 1))
        try:
            made += [p for p in (folder, *folder.parents) if not p.exists() and p not in made]
            folder.mkdir(parents=True, exist_ok=True)
            handle = taken(folder)
        except ImportError:
            return None
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return None
            raise InputError(
                f"{option} {folder} cannot be made ({error.strerror or error}): choose another one."
            ) from None
        if handle is not None:
            return handle
    raise InputError(
        f"another run is at work in {folder}: wait until it has ended, or choose another {option}."
    )
