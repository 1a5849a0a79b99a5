"""Replicates of the residual: bootstrap, and labels redrawn from the scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.metrics.tally import Tally
from calibrant.results import Floor, Interval

__all__ = [
    "bootstrap_noise",
    "floor_by_redrawing",
    "floor_of_sizes",
    "interval_from_sizes",
    "null_residuals",
    "null_tallies",
]

# A multinomial draw costs per kind, drawing row by row costs per row, about 30 times less each.
_ROW_BY_ROW = 30

# Rows drawn at once: calls cost more than few rows do, and many rows should stay in the cache.
_AT_ONCE = 100_000

METHOD = (
    "for the population value with the bins held fixed; low: estimate less the upper quantile of "
    "the size of the noise (resampled or redrawn), high: estimate plus the lower spread of the "
    "bootstrap"
)


def bootstrap_noise(tally: Tally, replicates: int, rng: np.random.Generator) -> FloatArray:
    r"""Draw how far a resampled residual is from the observed one: (replicates, C).

    Rows are drawn with replacement, as multinomial counts of (score, event or not). In a cell of
    rows with unequal weights, the weighted sum moves with its own variance (the sum of squares).
    """
    rows = tally.count.ravel()
    drawn = _resampled_counts(rows, replicates, rng)
    scale = np.sqrt(tally.square.ravel() / np.where(rows > 0, rows, 1.0))
    drawn -= rows
    drawn *= scale
    drawn += tally.weight.ravel()
    pairs = drawn.reshape(replicates, -1, 2)
    residual = pairs[..., 1] * (1.0 - tally.score) - pairs[..., 0] * tally.score
    residual /= drawn.sum(axis=1)[:, None]
    residual -= tally.residual
    return residual


def _resampled_counts(rows: FloatArray, replicates: int, rng: np.random.Generator) -> FloatArray:
    """Draw how many rows of each kind a sample with replacement holds: (replicates, kinds)."""
    n = round(float(rows.sum()))
    if n > _ROW_BY_ROW * len(rows):
        return rng.multinomial(n, rows / rows.sum(), size=replicates).astype(np.float64)
    kind = np.repeat(np.arange(len(rows)), np.rint(rows).astype(np.int64))
    drawn = np.empty((replicates, len(rows)))
    many = max(1, _AT_ONCE // n)
    for first in range(0, replicates, many):
        some = drawn[first : first + many]
        places = kind[rng.integers(0, n, (len(some), n))]
        places += len(rows) * np.arange(len(some))[:, None]  # each replicate has its own kinds
        some[:] = np.bincount(places.ravel(), minlength=some.size).reshape(some.shape)
    return drawn


def null_residuals(tally: Tally, draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw residuals of a perfectly calibrated model with these scores: (draws, C)."""
    rows = tally.rows
    came = rng.binomial(rows.astype(np.int64), tally.chance, size=(draws, len(rows)))
    if tally.by_event is not None:  # a redrawn event takes its weight along
        without, with_event = tally.by_event
        rest = rows - came
        gap = with_event * came * (1.0 - tally.score) - without * rest * tally.score
        total = with_event * came.sum(axis=1) + without * rest.sum(axis=1)
        return np.asarray(gap / total[:, None])
    scale = np.sqrt(tally.spread / np.where(rows > 0, rows, 1.0))
    return np.asarray((came - rows * tally.score) * scale / tally.total)


def null_tallies(tally: Tally, draws: int, rng: np.random.Generator) -> list[Tally]:
    """Draw whole tallies of a perfectly calibrated model, for errors that choose their bins."""
    rows = tally.rows
    came = rng.binomial(rows.astype(np.int64), tally.chance, size=(draws, len(rows)))
    return [tally.redraw(hits.astype(np.float64)) for hits in came]


def interval_from_sizes(
    estimate: float,
    noise: FloatArray,
    replicate: FloatArray,
    null: FloatArray,
    confidence: float = 0.95,
) -> Interval:
    r"""Interval of a calibration error with its bins held fixed.

    Let :math:`\|\cdot\|` be the size, g the true residual, :math:`\varepsilon` its noise and
    :math:`T = \|g + \varepsilon\|` the estimate. Then :math:`\|g\| \ge T - \|\varepsilon\|`, so
    low is T less the 97.5 % quantile of the noise: resampled, or redrawn from the scores where
    that is larger (a bin in which no event came resamples to no noise at all). And
    :math:`\|g\| \le T - s(\varepsilon)` for the linear form s that touches the size at g, so high
    adds to T the distance from the mean of the replicates to their 2.5 % quantile, which stands
    for the unknown s. Chance can only push T up, so no bias is taken off the upper end.

    The percentile bootstrap covers 0 % where the truth is 0 (it resamples on top of a value that
    chance has raised already), the reflected bootstrap as little as 79 % between the extremes.
    """
    tail = (1.0 - confidence) / 2.0
    most = max(float(np.quantile(sizes, 1.0 - tail)) for sizes in (noise, null))
    low = max(0.0, estimate - most)
    high = estimate + float(replicate.mean() - np.quantile(replicate, tail))
    return Interval(low, high, confidence, METHOD)


def floor_of_sizes(sizes: FloatArray | list[float]) -> Floor:
    """Summarise what perfectly calibrated models got."""
    return Floor(float(np.mean(sizes)), float(np.quantile(sizes, 0.95)))


def floor_by_redrawing(
    tally: Tally,
    values: Callable[[list[Tally]], Sequence[float] | FloatArray],
    draws: int,
    rng: np.random.Generator,
) -> Floor:
    """Floor of an error that chooses its own bins or bandwidth; `values` takes all redraws."""
    return floor_of_sizes(np.asarray(values(null_tallies(tally, draws, rng))))
