"""Batches of a split, dealt without a DataLoader from rows on the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, Self

import torch
from torch import Generator, Tensor


class Batch(NamedTuple):
    """A batch of rows of a split.

    Parameters
    ----------
    places : (b,) positions of the rows in the split
    inputs : arguments of the model: `model(*inputs)`
    labels : (b,) classes
    """

    places: Tensor
    inputs: tuple[Tensor, ...]
    labels: Tensor


class BatchRows(Protocol):
    """A split that can be iterated in batches."""

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
        """Yield all rows in batches: shuffled by `generator`, in a fixed order without one.

        `shard` = (rank, world) selects this process's part of every batch: rows rank, rank + world,
        ... When shuffled, a batch with fewer rows than processes is skipped by all processes;
        without a generator every row goes to exactly one process.
        """
