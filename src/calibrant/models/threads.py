"""How threads share the cores: many rows go fastest where each thread computes alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from calibrant.cores import usable_cores


@contextmanager
def one_core_each() -> Iterator[int]:
    """Have torch compute on one core in every thread for the time being; lend the number of cores.

    A small network gains little from a second core: its threads wait for each other at every step.
    Two threads with a batch each do not wait, and one can read texts while the other computes. The
    number lent is that of torch's threads, which `OMP_NUM_THREADS` sets.

    It is for a process of its own: threads that others started compute on one core too.

    Examples
    --------
    >>> with one_core_each() as cores:
    ...     print(torch.get_num_threads(), cores >= 1)
    1 True
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield before
    finally:
        torch.set_num_threads(before)


def leave_a_core(processes: int = 1) -> int:
    """Have torch compute on this process's share of the cores, but for one; return how many.

    What is left takes requests and writes records while the network computes. It is never more
    than torch had before, which `OMP_NUM_THREADS` sets, and never less than one.
    """
    threads = max(1, min(torch.get_num_threads(), usable_cores() // processes - 1))
    torch.set_num_threads(threads)
    return threads
