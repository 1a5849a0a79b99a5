"""Inter-process lock on the versions of a bundle."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from calibrant.errors import BundleError, VersionConflict
from calibrant.files.lock import LOCK, try_lock

_PAUSE = 0.05


@contextmanager
def lock_versions(folder: Path, *, mode: int = 0o777, patience: float = 10.0) -> Iterator[None]:
    """Create and lock a versions folder; remove it afterwards if it is empty."""
    until = time.monotonic() + patience
    handle = _try_lock(folder, mode)
    while handle is None:
        if time.monotonic() > until:
            raise VersionConflict(
                f"another process is changing the versions in {folder}: try again later."
            )
        time.sleep(_PAUSE)
        handle = _try_lock(folder, mode)
    try:
        yield
    finally:
        with suppress(OSError):
            if os.listdir(folder) == [LOCK]:  # no versions were kept
                os.unlink(folder / LOCK)
                os.rmdir(folder)
        os.close(handle)  # releases the lock


def _try_lock(folder: Path, mode: int) -> int | None:
    """Return the lock handle, or None if another process holds or has just removed the lock."""
    try:
        return try_lock(folder, mode)
    except ImportError:
        raise BundleError(
            "versions of a bundle cannot be changed on this system, which has no file locks: "
            "pack the bundle again instead."
        ) from None
