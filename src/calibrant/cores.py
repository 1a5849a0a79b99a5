"""Number of CPU cores available to the process."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return how many CPU cores this process may use.

    On Linux the CPU affinity of the process counts, elsewhere all cores of the machine.

    Examples
    --------
    >>> usable_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
