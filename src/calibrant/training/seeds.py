"""Random seeds of a run: one per epoch, so that a resumed run is identical."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Generator

_ORDER, _NOISE = 0, 1


@contextmanager
def isolated_randomness(seed: int | None = None) -> Iterator[None]:
    """Restore the caller's torch random state after the block.

    Torch has one generator per device and process, so runs in two threads of one process affect
    each other: use separate processes.
    """
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    with torch.random.fork_rng(devices=devices):
        if seed is not None:
            torch.manual_seed(seed)
        yield


def row_order(seed: int, epoch: int) -> Generator:
    """Return the generator that shuffles the rows of an epoch, equal on all processes."""
    return Generator().manual_seed(_mix_seed(seed, epoch, _ORDER, 0))


def seed_epoch(seed: int, epoch: int, rank: int) -> None:
    """Seed dropout and other noise of an epoch, differently on each process."""
    torch.manual_seed(_mix_seed(seed, epoch, _NOISE, rank))


def _mix_seed(seed: int, epoch: int, purpose: int, rank: int) -> int:
    """Hash numbers into one 63-bit seed, so that neighbouring inputs are unrelated."""
    state = 0x9E3779B97F4A7C15
    for part in (seed, epoch, purpose, rank):
        state = (state ^ (part + 0x9E3779B97F4A7C15)) * 0xBF58476D1CE4E5B9 % 2**64
        state ^= state >> 31
    return state % 2**63
