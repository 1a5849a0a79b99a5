"""What a process may compute on: whether a GPU is here, and how many cores are its own."""

from __future__ import annotations

import torch


def gpu_is_here() -> bool:
    """Say whether torch finds a GPU."""
    return bool(torch.cuda.is_available())


def use_threads(n: int) -> None:
    """Have torch compute on n cores from now on, in this process.

    Examples
    --------
    >>> before = torch.get_num_threads()
    >>> use_threads(1)
    >>> torch.get_num_threads()
    1
    >>> use_threads(before)
    """
    torch.set_num_threads(n)
