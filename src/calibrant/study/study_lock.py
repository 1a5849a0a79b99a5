"""One run at a time in the folder of a study, over all processes."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from calibrant.data.file_lock import LOCK, taken
from calibrant.errors import InputError

__all__ = ["alone_in"]

_TRIES, _PAUSE = 3, 0.05
"""A run that is just ending takes its lock away: then the next try finds the folder free."""

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold the folder of a study, which is made, and taken away where nothing was put into it.

    A second run is refused at once: two would remove each other's checkpoints. The lock goes with
    the process, so one that was killed leaves none. On a system, or a disk, without locks of files
    nothing is guarded.

    Parameters
    ----------
    folder : the folder

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
        handle = _held(folder, made)
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


def _held(folder: Path, made: list[Path]) -> int | None:
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
                f"--out {folder} cannot be made ({error.strerror or error}): choose another folder."
            ) from None
        if handle is not None:
            return handle
    raise InputError(
        f"another run is at work in {folder}: wait until it has ended, or choose another folder "
        "with --out."
    )
