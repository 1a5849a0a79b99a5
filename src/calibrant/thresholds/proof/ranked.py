"""Labelled rows ranked by descending score."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray


@dataclass(frozen=True)
class RankedRows:
    """Labelled rows by descending score.

    Position k means "the first k rows are acted on". A threshold can only lie at the end of a tie:
    those positions are `ends`.
    """

    score: NDArray[np.floating[Any]]  # (n,) descending
    event: NDArray[np.bool_]  # (n,) whether the row is positive; tied rows are in random order
    weight: FloatArray | None = None  # (n,) or None
    largest_weight: float = 1.0  # largest possible weight of a row, in this sample or another
    withheld: int = 0  # number of rows at the end, with score -inf, that are never acted on

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.score)

    @property
    def last(self) -> int:
        """Last allowed position: withheld rows are never acted on."""
        return self.n - self.withheld

    @cached_property
    def positives(self) -> int:
        """Number of positive rows."""
        return int(self.event.sum())

    @cached_property
    def hits(self) -> IntArray:
        """Positives among the first 1, 2, ... n rows."""
        return np.cumsum(self.event)

    @cached_property
    def ends(self) -> IntArray:
        """Positions between two distinct scores, and n, where every row is acted on."""
        return np.append(np.flatnonzero(self.score[1:] < self.score[:-1]) + 1, self.n)

    def gap_at(self, position: int) -> tuple[float, float]:
        """Return the first score passed over and the last one acted on; infinite if none."""
        low = float(self.score[position]) if position < self.n else -np.inf
        return low, float(self.score[position - 1]) if position > 0 else np.inf


def rank_rows(
    scores: NDArray[np.floating[Any]],
    events: NDArray[np.bool_],
    weights: FloatArray | None = None,
    *,
    largest_weight: float | None = None,
    rng: int | np.random.Generator = 0,
) -> RankedRows:
    """Sort rows by descending score and shuffle tied rows.

    The result does not depend on the order of the input. A score of -inf marks a row that is never
    acted on.
    """
    order = np.argsort(-scores)
    score, event = scores[order], events[order]
    weight = None if weights is None else weights[order]
    same = score[1:] == score[:-1]
    if same.any():
        shuffled = _shuffle_ties(same, event, weight, _tie_generator(rng, same))
        event = event[shuffled]
        weight = None if weight is None else weight[shuffled]
    withheld = int(np.isneginf(score).sum())
    if weight is None:
        return RankedRows(score, event, withheld=withheld)
    return RankedRows(score, event, weight, largest_weight or float(weight.max()), withheld)


def _tie_generator(rng: int | np.random.Generator, same: NDArray[np.bool_]) -> np.random.Generator:
    """Return a generator seeded by the seed and the pattern of ties.

    With the seed alone, the ties of all samples would get nearly the same order, and the proof
    needs an order that is random from sample to sample. The pattern is independent of the labels.
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, bool) or not isinstance(rng, Integral) or rng < 0:
        raise InputError(f"rng must be a seed (a whole number) or a generator, got {rng!r}.")
    pattern = blake2b(np.packbits(same).tobytes(), digest_size=8).digest()
    return np.random.default_rng([int(rng), int.from_bytes(pattern)])


def _shuffle_ties(
    same: NDArray[np.bool_],
    event: NDArray[np.bool_],
    weight: FloatArray | None,
    rng: np.random.Generator,
) -> IntArray:
    """Return a permutation of the rows that shuffles tied rows."""
    n = len(event)
    tied = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
    block = np.cumsum(np.append(True, ~same))[tied]
    # Canonical order first, so that the order of the input has no effect.
    keys = (event[tied], block) if weight is None else (weight[tied], event[tied], block)
    canonical = tied[np.lexsort(keys)]
    out = np.arange(n)
    out[tied] = canonical[np.lexsort((rng.random(len(tied)), block))]
    return out
