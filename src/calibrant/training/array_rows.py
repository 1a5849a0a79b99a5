"""Batches of numeric rows: tables, images, embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from calibrant.errors import InputError
from calibrant.training.batches import Batch
from calibrant.training.sharding import as_row_labels, blocks, plan_batches, views

_BLOCK = 64 * 2**20  # bytes gathered at a time: bounds the memory of an epoch


class ArrayRows:
    """BatchRows whose features are one tensor; batches are views of it.

    A shuffled epoch copies the rows in their new order, about 64 MiB at a time, and yields views of
    that copy; an epoch in order yields views of the features themselves. Do not write into them.

    A shuffled epoch never ends with a batch that leaves a process fewer than two rows, since batch
    norm cannot train on one row: such a remainder joins the batch before. No row is lost.

    Parameters
    ----------
    features : (n, ...) finite floating-point numbers; numpy arrays become float32, tensors keep
        their precision
    labels : (n,) classes as whole numbers; None for prediction, plan_batches as zeros

    Examples
    --------
    >>> import numpy as np, torch
    >>> from calibrant.training.array_rows import ArrayRows
    >>> rows = ArrayRows(np.zeros((9, 2)), np.arange(9))
    >>> [len(batch.labels) for batch in rows.batches(4)]
    [4, 4, 1]
    >>> shuffled = rows.batches(4, generator=torch.Generator().manual_seed(0))
    >>> [len(batch.labels) for batch in shuffled]
    [4, 5]
    """

    def __init__(self, features: Any, labels: Any = None) -> None:
        self.features = _as_features(features)
        self.labels = as_row_labels(labels, len(self.features)).to(self.features.device)

    def __len__(self) -> int:
        return len(self.features)

    @property
    def nbytes(self) -> int:
        """Size of the rows in bytes."""
        return self.features.nbytes + self.labels.nbytes

    def to(self, device: torch.device | str) -> ArrayRows:
        """Return the same rows on a device."""
        moved = object.__new__(ArrayRows)
        moved.features = self.features.to(device)
        moved.labels = self.labels.to(device)
        return moved

    def batches(
        self, size: int, *, generator: Generator | None = None, shard: tuple[int, int] = (0, 1)
    ) -> Iterator[Batch]:
        """Yield all rows in batches: shuffled by `generator`, in order without one."""
        order, sizes = plan_batches(len(self), size, generator, shard)
        order = order.to(self.labels.device)
        in_order = generator is None and shard[1] == 1
        row = self.features.nbytes // max(len(self), 1)
        for start, stop, block in blocks(sizes, row, _BLOCK):
            places = order[start:stop]
            chosen = slice(start, stop) if in_order else places
            yield from views(places, self.features[chosen], self.labels[chosen], block)


def _as_features(features: Any) -> Tensor:
    if isinstance(features, Tensor):
        tensor = features.detach()
    else:
        values = np.asarray(features)
        if values.dtype.kind != "f":
            raise InputError(f"features must be floating-point numbers, got {values.dtype}.")
        tensor = torch.from_numpy(np.array(values, dtype=np.float32, order="C"))
    if not tensor.is_floating_point():
        raise InputError(f"features must be floating-point numbers, got {tensor.dtype}.")
    if tensor.ndim < 2:
        raise InputError(
            f"features must have one row per label and at least one column, (n, ...), "
            f"got shape {tuple(tensor.shape)}."
        )
    finite = tensor.isfinite()
    if not bool(finite.all()):
        row = int((~finite).flatten(1).any(1).nonzero()[0, 0])
        raise InputError(
            f"features must be finite numbers, but row {row} holds "
            f"{float(tensor[row][~finite[row]][0])}: fill or drop it before training."
        )
    return tensor.contiguous()
