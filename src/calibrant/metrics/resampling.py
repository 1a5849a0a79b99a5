"""Replicates of the residual: bootstrap, and labels redrawn from the scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.metrics.seminorms import Seminorm
from calibrant.metrics.tally import Tally
from calibrant.results import Floor, Interval

__all__ = [
    "bootstrap_noise",
    "floor_of_sizes",
    "null_residuals",
    "null_tallies",
    "seminorm_interval",
]

METHOD = (
    "for the population value with the bins held fixed; low: estimate less the 97.5 % quantile of "
    "the resampled noise, high: reflected bootstrap"
)


def bootstrap_noise(tally: Tally, replicates: int, rng: np.random.Generator) -> FloatArray:
    r"""Draw how far a resampled residual is from the observed one: (replicates, C).

    Rows are drawn with replacement, as multinomial counts of (score, event or not). In a cell of
    rows with unequal weights, the weighted sum moves with its own variance (the sum of squares).
    """
    rows = tally.count.ravel()
    drawn = rng.multinomial(tally.n, rows / rows.sum(), size=replicates).astype(np.float64)
    scale = np.sqrt(tally.square.ravel() / np.where(rows > 0, rows, 1.0))
    drawn -= rows
    drawn *= scale
    drawn += tally.weight.ravel()
    pairs = drawn.reshape(replicates, -1, 2)
    residual = pairs[..., 1] * (1.0 - tally.score) - pairs[..., 0] * tally.score
    residual /= drawn.sum(axis=1)[:, None]
    residual -= tally.residual
    return residual


def null_residuals(tally: Tally, draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw residuals of a perfectly calibrated model with these scores: (draws, C)."""
    rows = tally.count.sum(axis=1)
    came = rng.binomial(rows.astype(np.int64), tally.score, size=(draws, len(rows)))
    scale = np.sqrt(tally.square.sum(axis=1) / np.where(rows > 0, rows, 1.0))
    return np.asarray((came - rows * tally.score) * scale / tally.total)


def null_tallies(tally: Tally, draws: int, rng: np.random.Generator) -> list[Tally]:
    """Draw whole tallies of a perfectly calibrated model, for errors that choose their bins."""
    rows = tally.count.sum(axis=1)
    came = rng.binomial(rows.astype(np.int64), tally.score, size=(draws, len(rows)))
    return [tally.redraw(hits.astype(np.float64)) for hits in came]


def seminorm_interval(
    size: Seminorm, residual: FloatArray, noise: FloatArray, confidence: float = 0.95
) -> Interval:
    r"""Interval of a calibration error with its bins held fixed.

    The estimate is at most truth + size(noise), hence low = max(0, estimate - quantile of
    size(noise)); high reflects the bootstrap: 2 estimate - lower quantile of the replicates. The
    plain percentile bootstrap covers 0 % where the truth is 0, for it resamples on top of a value
    that chance has raised already. The estimate itself may lie above the interval: that is the
    same upward push.
    """
    return interval_from_sizes(
        float(size(residual)), size(noise), size(residual + noise), confidence
    )


def interval_from_sizes(
    estimate: float, noise: FloatArray, replicate: FloatArray, confidence: float = 0.95
) -> Interval:
    """Apply the rule of `seminorm_interval` to sizes that are computed already."""
    tail = (1.0 - confidence) / 2.0
    low = max(0.0, estimate - float(np.quantile(noise, 1.0 - tail)))
    high = 2.0 * estimate - float(np.quantile(replicate, tail))
    return Interval(low, max(high, low), confidence, METHOD)


def floor_of_sizes(sizes: FloatArray | list[float]) -> Floor:
    """Summarise what perfectly calibrated models got."""
    return Floor(float(np.mean(sizes)), float(np.quantile(sizes, 0.95)))


def floor_by_redrawing(
    tally: Tally, value: Callable[[Tally], float], draws: int, rng: np.random.Generator
) -> Floor:
    """Floor of an error that chooses its own bins or bandwidth."""
    return floor_of_sizes([value(redrawn) for redrawn in null_tallies(tally, draws, rng)])
