"""CPU cores of the process, and how the threads of compiled code share them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_limit: int | None = None
"""Threads of one call of compiled code, set by `one_core_each` and `leave_a_core`."""


def usable_cores() -> int:
    """Return how many CPU cores this process may use.

    On Linux the CPU affinity of the process counts, elsewhere all cores of the machine.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usable_threads() -> int:
    """Return how many threads compiled code may start for one call.

    It is the number of torch's threads, or without torch that of the usable cores, but no more than
    `OMP_NUM_THREADS`; in `one_core_each` it is 1.

    Examples
    --------
    >>> with one_core_each():
    ...     print(usable_threads())
    1
    """
    if _limit is not None:
        return _limit
    torch = _loaded_torch()
    if torch is not None:
        return int(max(1, min(torch.get_num_threads(), usable_cores())))
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return (
        min(usable_cores(), int(wanted)) if wanted.isdecimal() and int(wanted) else usable_cores()
    )


def _loaded_torch() -> Any:
    """Return torch if a model has imported it, else None."""
    return sys.modules.get("torch")


@contextmanager
def one_core_each() -> Iterator[int]:
    """Limit compiled code to one core per thread, and yield the number of cores to share.

    A small network gains little from a second core: its threads wait for each other at every step.
    Two threads with a batch each do not wait, and one can read texts while the other computes. The
    number yielded is that of torch's threads, which `OMP_NUM_THREADS` sets, and without torch that
    of the usable cores. Threads that others started are limited too.
    """
    global _limit
    torch = _loaded_torch()
    outer, before = _limit, usable_threads() if torch is None else torch.get_num_threads()
    _limit = 1
    if torch is not None:
        torch.set_num_threads(1)
    try:
        yield before
    finally:
        _limit = outer
        if torch is not None:
            torch.set_num_threads(before)


def leave_a_core(processes: int = 1) -> int:
    """Limit compiled code to this process's share of the cores minus one; return how many.

    What is left takes requests and writes records while the network computes. It is never more
    than torch had before, which `OMP_NUM_THREADS` sets, and never less than one.
    """
    global _limit
    torch = _loaded_torch()
    share = usable_cores() // processes - 1
    threads = max(1, share if torch is None else min(torch.get_num_threads(), share))
    if torch is None:
        _limit = threads
    else:
        torch.set_num_threads(threads)
    return threads
