"""Batches of token ids, with texts of similar length together."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import torch
from torch import Generator, Tensor

from calibrant.errors import InputError
from calibrant.models.text_batch import padded
from calibrant.training.batches import Batch
from calibrant.training.sharding import (
    as_row_labels,
    batch_sizes,
    check_batch_size,
    row_positions,
    shard_batches,
)

# Larger pools and less jitter reduce padding; the opposite mixes rows better. With these values,
# log-normal lengths (sigma 0.8) are padded by about 30 %.
_POOL = 50
_JITTER = 0.15
_COLUMNS = 32


class TextRows:
    """Texts of any length, padded to the longest text of their batch, on a GPU to a multiple of 32.

    A shuffled epoch shuffles the rows, sorts each pool of 50 batches by length times a random
    factor near 1, cuts it into batches and shuffles the batches: rows of a batch have similar
    lengths, and batches differ between epochs. Without a generator rows come sorted by length;
    `Batch.places` has their positions.

    A batch's inputs are `(tokens, lengths)`: (b, L) token ids, 0 beyond the end of a text, and
    (b,) lengths. An empty text has length 0 and one column of padding. Lengths stay on the CPU,
    where packing needs them, when the tokens are on a device.

    A shuffled epoch never has a batch that leaves a process fewer than two rows: such a remainder
    joins the batch before.

    Parameters
    ----------
    tokens : concatenated token ids of all texts, whole numbers of at least 0
    offsets : (n + 1,) start of each text in `tokens`; the last is the number of tokens
    labels : (n,) classes as whole numbers; None for prediction, dealt as zeros
    max_length : longer texts are truncated; None for no limit

    Examples
    --------
    >>> from calibrant.training.text_rows import TextRows
    >>> rows = TextRows([5, 6, 7, 8], [0, 3, 4], [1, 0])  # "5 6 7" and "8"
    >>> batch = next(rows.batches(2))
    >>> batch.inputs[0].tolist(), batch.inputs[1].tolist(), batch.places.tolist()
    ([[8, 0, 0], [5, 6, 7]], [1, 3], [1, 0])
    """

    def __init__(
        self, tokens: Any, offsets: Any, labels: Any = None, max_length: int | None = None
    ) -> None:
        self.tokens = _as_tokens(tokens)
        bounds = _as_offsets(offsets, len(self.tokens))
        self.starts = bounds[:-1]
        self.lengths = bounds.diff()
        if max_length is not None:
            whole = isinstance(max_length, Integral) and not isinstance(max_length, bool)
            if not whole or max_length < 1:
                raise InputError(
                    f"max_length must be a whole number of at least 1 or None, got {max_length!r}."
                )
            self.lengths = self.lengths.clamp(max=int(max_length))
        self.longest = int(self.lengths.max()) if len(self.lengths) else 0
        self.labels = as_row_labels(labels, len(self.lengths)).to(self.tokens.device)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def nbytes(self) -> int:
        """Size of the rows in bytes."""
        held = (self.tokens, self.starts, self.lengths, self.labels)
        return sum(tensor.nbytes for tensor in held)

    def to(self, device: torch.device | str) -> TextRows:
        """Return the same rows on a device; starts and lengths stay on the CPU."""
        moved = object.__new__(TextRows)
        moved.starts, moved.lengths, moved.longest = self.starts, self.lengths, self.longest
        moved.tokens, moved.labels = self.tokens.to(device), self.labels.to(device)
        return moved

    def batches(
        self, size: int, *, generator: Generator | None = None, shard: tuple[int, int] = (0, 1)
    ) -> Iterator[Batch]:
        """Yield all rows in batches: shuffled by `generator`, sorted by length without one."""
        check_batch_size(size)
        shuffled = generator is not None
        sizes = batch_sizes(len(self), size, shuffled=shuffled, world=shard[1])
        order = row_positions(len(self), generator)
        if generator is None:
            order = order[self.lengths.argsort(stable=True)]
        else:
            order = self._bucket_rows(order, size, generator)
            order, sizes = _shuffle_batches(order, sizes, generator)
        order, sizes = shard_batches(order, sizes, shard, shuffled=shuffled)
        start = 0
        for own in sizes:
            yield self._make_batch(order[start : start + own])
            start += own

    def _bucket_rows(self, order: Tensor, size: int, generator: Generator) -> Tensor:
        """Sort each pool of 50 batches by length times a random factor near 1."""
        if not len(order):
            return order
        draw = torch.rand(len(order), generator=generator, device=generator.device).cpu()
        key = self.lengths[order] * (1 + _JITTER * (2 * draw.double() - 1))
        run = torch.arange(len(order)) // (_POOL * size)
        return order[(run * (2 * key.max() + 1) + key).argsort(stable=True)]

    def _width(self, longest: int) -> int:
        """Return the width of a batch; on a GPU it is rounded up.

        GPU libraries plan every new shape, which takes longer than a step.
        """
        step = _COLUMNS if self.tokens.is_cuda else 1
        rounded = -(-longest // step) * step
        return max(min(rounded, self.longest), 1)  # a transformer may have no more positions

    def _make_batch(self, places: Tensor) -> Batch:
        lengths = self.lengths[places]
        width = self._width(int(lengths.max()))
        # One small copy to the device per batch; the padded batch is made there.
        needed = torch.stack((places, self.starts[places], lengths))
        places, starts, counts = needed.to(self.tokens.device, non_blocking=True)
        tokens = padded(self.tokens, starts, counts, width)
        return Batch(places, (tokens, lengths), self.labels[places])


def _shuffle_batches(
    order: Tensor, sizes: list[int], generator: Generator
) -> tuple[Tensor, list[int]]:
    batches = order.split_with_sizes(sizes) if sizes else ()
    turns = row_positions(len(sizes), generator).tolist()
    mixed = [batches[turn] for turn in turns]
    return torch.cat([order[:0], *mixed]), [sizes[turn] for turn in turns]


def _as_tokens(tokens: Any) -> Tensor:
    tensor = torch.as_tensor(tokens)
    if not len(tensor):
        return tensor.long()
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise InputError(f"tokens must be whole numbers, got {tensor.dtype}.")
    if tensor.ndim != 1:
        raise InputError(
            "tokens must be the concatenated ids of all texts, in one dimension, "
            f"got shape {tuple(tensor.shape)}."
        )
    if int(tensor.min()) < 0:
        raise InputError(f"tokens must be at least 0, got {int(tensor.min())}.")
    return tensor.long()


def _as_offsets(offsets: Any, n_tokens: int) -> Tensor:
    tensor = torch.as_tensor(offsets)
    if tensor.is_floating_point() or tensor.ndim != 1 or not len(tensor):
        raise InputError(
            "offsets must be whole numbers in one dimension, one more than there are texts, "
            f"got {tensor.dtype} of shape {tuple(tensor.shape)}."
        )
    tensor = tensor.long().cpu()
    if int(tensor[0]) != 0 or int(tensor[-1]) != n_tokens or bool((tensor.diff() < 0).any()):
        raise InputError(
            f"offsets must rise from 0 to the number of tokens, {n_tokens} here, "
            f"got {int(tensor[0])} to {int(tensor[-1])}."
        )
    return tensor
