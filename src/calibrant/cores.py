"""CPU cores of the process, and how torch's threads share them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def usable_cores() -> int:
    """Return how many CPU cores this process may use.

    On Linux the CPU affinity of the process counts, elsewhere all cores of the machine.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _loaded_torch() -> Any:
    """Return torch if a model has imported it, else None."""
    return sys.modules.get("torch")


@contextmanager
def one_core_each() -> Iterator[int]:
    """Limit torch to one core per thread, and yield the number of cores to share.

    A small network gains little from a second core: its threads wait for each other at every step.
    Two threads with a batch each do not wait, and one can read texts while the other computes. The
    number yielded is that of torch's threads, which `OMP_NUM_THREADS` sets, and without torch that
    of the usable cores. Threads that others started are limited too.
    """
    torch = _loaded_torch()
    if torch is None:
        yield usable_cores()
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield before
    finally:
        torch.set_num_threads(before)


def leave_a_core(processes: int = 1) -> int:
    """Limit torch to this process's share of the cores minus one; return how many.

    What is left takes requests and writes records while the network computes. It is never more
    than torch had before, which `OMP_NUM_THREADS` sets, and never less than one.
    """
    torch = _loaded_torch()
    share = usable_cores() // processes - 1
    threads = max(1, share if torch is None else min(torch.get_num_threads(), share))
    if torch is not None:
        torch.set_num_threads(threads)
    return threads
