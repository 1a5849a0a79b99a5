"""Randomness of a run: each epoch has its own seed, so a resumed run repeats it exactly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Generator

__all__ = ["own_randomness", "row_order", "seed_epoch"]

_ORDER, _NOISE = 0, 1


@contextmanager
def own_randomness(seed: int | None = None) -> Iterator[None]:
    """Leave the caller's random numbers of torch as they were, whatever is drawn meanwhile.

    Torch has one generator per device for the whole process, so two runs in threads of one process
    draw from each other: give runs processes of their own.
    """
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    with torch.random.fork_rng(devices=devices):
        if seed is not None:
            torch.manual_seed(seed)
        yield


def row_order(seed: int, epoch: int) -> Generator:
    """Return the generator that shuffles the rows of an epoch; the same on every process."""
    return Generator().manual_seed(_mixed(seed, epoch, _ORDER, 0))


def seed_epoch(seed: int, epoch: int, rank: int) -> None:
    """Seed dropout and whatever else draws during an epoch; other on every process."""
    torch.manual_seed(_mixed(seed, epoch, _NOISE, rank))


def _mixed(seed: int, epoch: int, purpose: int, rank: int) -> int:
    """Mix numbers into one seed of 63 bits, so that neighbours share nothing."""
    found = 0x9E3779B97F4A7C15
    for part in (seed, epoch, purpose, rank):
        found = (found ^ (part + 0x9E3779B97F4A7C15)) * 0xBF58476D1CE4E5B9 % 2**64
        found ^= found >> 31
    return found % 2**63
