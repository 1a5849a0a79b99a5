"""Divide a split into batches, and batches into the parts of processes."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import torch
from torch import Generator, Tensor

from calibrant.errors import InputError
from calibrant.training.batches import Batch

_BATCHES = 256  # batches per block at most, so that the first batch comes early


def as_row_labels(labels: Any, n: int) -> Tensor:
    """Return one integer class per row; zeros without labels (prediction)."""
    if labels is None:
        return torch.zeros(n, dtype=torch.int64)
    tensor = torch.as_tensor(labels)
    if not n and not len(tensor):
        return tensor.long()
    if tensor.is_floating_point() or tensor.is_complex():
        raise InputError(f"labels must be whole numbers, one class per row, got {tensor.dtype}.")
    if tensor.shape != (n,):
        raise InputError(
            f"labels must hold one class per row, ({n},) here, got shape {tuple(tensor.shape)}."
        )
    return tensor.long()


def check_batch_size(size: int) -> None:
    """Raise `InputError` for a batch size below 1."""
    if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
        raise InputError(f"batch_size must be a whole number of at least 1, got {size!r}.")


def row_positions(n: int, generator: Generator | None) -> Tensor:
    """Return the positions of all rows: shuffled by the generator, in order without one."""
    if generator is None:
        return torch.arange(n)
    return torch.randperm(n, generator=generator, device=generator.device).cpu()


def batch_sizes(n: int, size: int, *, shuffled: bool, world: int = 1) -> list[int]:
    """Return the number of rows of each batch.

    When shuffled, a remainder that would give a process fewer than two rows joins the batch before:
    batch norm cannot train on one row.

    Examples
    --------
    >>> from calibrant.training.sharding import batch_sizes
    >>> batch_sizes(9, 4, shuffled=True), batch_sizes(9, 4, shuffled=False)
    ([4, 5], [4, 4, 1])
    """
    whole, rest = divmod(n, size)
    sizes = [size] * whole
    if not rest:
        return sizes
    if shuffled and whole and rest < 2 * world:
        sizes[-1] += rest
        return sizes
    return [*sizes, rest]


def blocks(sizes: list[int], row: int, most: int) -> Iterator[tuple[int, int, list[int]]]:
    """Group batches into blocks of at most `most` bytes: start, stop and batch sizes of each.

    Examples
    --------
    >>> from calibrant.training.sharding import blocks
    >>> list(blocks([4, 4, 1], row=10, most=80))
    [(0, 8, [4, 4]), (8, 9, [1])]
    """
    block: list[int] = []
    start = rows = 0
    for size in sizes:
        if block and ((rows + size) * row > most or len(block) == _BATCHES):
            yield start, start + rows, block
            start, block, rows = start + rows, [], 0
        block.append(size)
        rows += size
    if block:
        yield start, start + rows, block


def plan_batches(
    n: int, size: int, generator: Generator | None, shard: tuple[int, int]
) -> tuple[Tensor, list[int]]:
    """Return the positions of this process's rows, in order, and its batch sizes.

    Examples
    --------
    >>> from calibrant.training.sharding import plan_batches
    >>> plan_batches(5, 4, None, (1, 2))  # the second of two processes
    (tensor([1, 3]), [2])
    """
    check_batch_size(size)
    shuffled = generator is not None
    sizes = batch_sizes(n, size, shuffled=shuffled, world=shard[1])
    return shard_batches(row_positions(n, generator), sizes, shard, shuffled=shuffled)


def shard_batches(
    order: Tensor, sizes: list[int], shard: tuple[int, int], *, shuffled: bool
) -> tuple[Tensor, list[int]]:
    """Return the positions of this process's rows, and its batch sizes.

    Process `rank` of `world` takes rows rank, rank + world, ... of each batch. When shuffled, a
    batch with fewer rows than processes is skipped by all, so that all take the same steps.
    """
    rank, world = shard
    if not 0 <= rank < world:
        raise InputError(f"shard must be (rank, world) with 0 <= rank < world, got {shard!r}.")
    if world == 1:
        return order, sizes
    batches = order.split_with_sizes(sizes)
    parts = [batch[rank::world] for batch in batches if not shuffled or len(batch) >= world]
    parts = [part for part in parts if len(part)]
    return torch.cat([order[:0], *parts]), [len(part) for part in parts]


def views(places: Tensor, features: Tensor, labels: Tensor, sizes: list[int]) -> Iterator[Batch]:
    """Yield batches of these sizes as views of a block of rows."""
    parts = zip(
        places.split_with_sizes(sizes),
        features.split_with_sizes(sizes),
        labels.split_with_sizes(sizes),
        strict=True,
    )
    for of_places, of_features, of_labels in parts:
        yield Batch(of_places, (of_features,), of_labels)
