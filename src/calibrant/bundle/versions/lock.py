"""One change of a bundle at a time, over all processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from calibrant.errors import BundleError, VersionConflict
from calibrant.files.lock import LOCK, taken

__all__ = ["alone"]

_PAUSE = 0.05


@contextmanager
def alone(place: Path, *, mode: int = 0o777, patience: float = 10.0) -> Iterator[None]:
    """Hold the lock of a versions folder, which is made, and taken away where it stays empty."""
    until = time.monotonic() + patience
    handle = _taken(place, mode)
    while handle is None:
        if time.monotonic() > until:
            raise VersionConflict(
                f"another process is at work on the versions in {place}: try again when it is done."
            )
        time.sleep(_PAUSE)
        handle = _taken(place, mode)
    try:
        yield
    finally:
        with suppress(OSError):
            if os.listdir(place) == [LOCK]:  # nothing is kept, so nothing is left behind
                os.unlink(place / LOCK)
                os.rmdir(place)
        os.close(handle)  # this lets go of the lock


def _taken(place: Path, mode: int) -> int | None:
    """Return the handle of the lock, or None where another has it or has just removed it."""
    try:
        return taken(place, mode)
    except ImportError:
        raise BundleError(
            "versions of a bundle cannot be changed on this system, which has no locks of files: "
            "pack the bundle again instead."
        ) from None
