"""A split as batches of tensors: no DataLoader, rows stay on the device when they fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, Self

import torch
from torch import Generator, Tensor

__all__ = ["Batch", "Rows"]


class Batch(NamedTuple):
    """Some rows of a split.

    Parameters
    ----------
    places : (b,) where the rows stand in the split
    inputs : what the model is called with: `model(*inputs)`
    labels : (b,) classes
    """

    places: Tensor
    inputs: tuple[Tensor, ...]
    labels: Tensor


class Rows(Protocol):
    """A split whose rows can be dealt out in batches."""

    labels: Tensor

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """Size of the rows in bytes."""

    def to(self, device: torch.device) -> Self:
        """Return the same rows on a device."""

    def batches(
        self, size: int, *, generator: Generator | None = None, shard: tuple[int, int] = (0, 1)
    ) -> Iterator[Batch]:
        """Deal out all rows: shuffled by `generator`, in an order of their own without one.

        `shard` = (rank, world) takes this process's part of every batch: rows rank, rank + world,
        ... A batch with fewer rows than processes is left out by all when shuffled; without a
        generator every row is dealt to exactly one process.
        """
