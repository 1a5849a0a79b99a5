"""Paired difference in log loss on the same test rows, with its standard error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import FloatArray

__all__ = ["SURE", "PairedLoss", "paired_loss"]

SURE = 2.0
"""Standard errors that a difference needs to be called one."""


@dataclass(frozen=True)
class PairedLoss:
    """Log loss of one way minus that of another; below 0 the first is better.

    Parameters
    ----------
    difference : mean over test rows, in nats
    error : its standard error
    rows : test rows
    seeds : that both ways were run with
    by_seed : the difference of each seed
    same : whether both ways give every row the same loss
    """

    difference: float
    error: float
    rows: int
    seeds: tuple[int, ...]
    by_seed: Mapping[int, float]
    same: bool = False

    @property
    def verdict(self) -> str:
        """Return "better by 2 SE", "worse by 2 SE" or "level"."""
        if abs(self.difference) <= SURE * self.error:
            return "level"
        return f"{'better' if self.difference < 0 else 'worse'} by {SURE:g} SE"

    @property
    def word(self) -> str:
        """Return the verdict in a word: "better", "level" or "worse"."""
        return self.verdict.partition(" ")[0]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        fields = asdict(self)
        fields["seeds"] = list(self.seeds)
        fields["by_seed"] = {str(seed): value for seed, value in self.by_seed.items()}
        return {**fields, "verdict": self.verdict}


def paired_loss(ours: Mapping[int, Any], theirs: Mapping[int, Any]) -> PairedLoss | None:
    r"""Compare the losses of test rows, seed with seed and row with row.

    .. math:: d_i = \frac1S \sum_s (a_{is} - b_{is}), \quad
        \bar d = \frac1n \sum_i d_i, \quad
        se = \sqrt{\frac{\sum_i (d_i - \bar d)^2}{n (n - 1)}}

    :math:`a_{is}` and :math:`b_{is}` are the losses of row i under both ways, trained with seed s;
    S seeds that both have; n rows. Seeds are averaged first, because they share their rows: n rows
    under S seeds are not nS rows. So the error says how far the difference of these very networks
    may move on other rows. It does not say how far it would move with other seeds: `by_seed` shows
    that. None where no seed is shared, there are fewer than two rows or a loss is not finite.

    Parameters
    ----------
    ours, theirs : (n,) losses by seed, rows in the same order

    Examples
    --------
    >>> found = paired_loss({0: [1.0, 2.0], 1: [1.0, 4.0]}, {0: [2.0, 2.0], 1: [2.0, 4.0]})
    >>> found.difference, found.error, found.verdict  # d is -1 and 0
    (-0.5, 0.5, 'level')
    """
    seeds = tuple(sorted(set(ours) & set(theirs)))
    if not seeds:
        return None
    gaps = np.stack([_gap(ours[seed], theirs[seed]) for seed in seeds])
    if gaps.shape[1] < 2 or not np.isfinite(gaps).all():
        return None
    each = gaps.mean(axis=0)
    return PairedLoss(
        difference=float(each.mean()),
        error=float(each.std(ddof=1) / np.sqrt(len(each))),
        rows=len(each),
        seeds=seeds,
        by_seed={seed: float(gap.mean()) for seed, gap in zip(seeds, gaps, strict=True)},
        same=not gaps.any(),
    )


def _gap(ours: Any, theirs: Any) -> FloatArray:
    a, b = (np.asarray(each, dtype=np.float64) for each in (ours, theirs))
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(
            f"losses of {a.shape} and {b.shape} cannot be paired: give one of each test row."
        )
    with np.errstate(invalid="ignore"):  # infinity less infinity; the caller looks for it
        gap: FloatArray = a - b
    return gap
