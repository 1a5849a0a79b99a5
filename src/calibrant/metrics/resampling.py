"""Bootstrap and null resampling of calibration residuals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.metrics.tally import Tally
from calibrant.results import Floor, Interval

# A multinomial draw costs per kind; drawing row by row costs about 30 times less per row.
_ROW_BY_ROW = 30

# Number of rows drawn per call: enough to amortise it, few enough for the cache.
_ROWS_PER_CALL = 100_000

METHOD = (
    "for the population value with the bins held fixed; low: estimate less the upper quantile of "
    "the size of the noise (resampled or redrawn), high: estimate plus the lower spread of the "
    "bootstrap"
)


def bootstrap_noise(tally: Tally, replicates: int, rng: np.random.Generator) -> FloatArray:
    """Draw the deviations of bootstrap residuals from the observed ones: (replicates, C).

    Rows are drawn with replacement, as multinomial counts of (score, event). In a cell of rows with
    unequal weights, the weighted sum varies with its own variance (the sum of squares).
    """
    rows = tally.count.ravel()
    sums = _draw_counts(rows, replicates, rng)
    scale = np.sqrt(tally.square.ravel() / np.where(rows > 0, rows, 1.0))
    sums -= rows
    sums *= scale
    sums += tally.weight.ravel()
    pairs = sums.reshape(replicates, -1, 2)
    residual = pairs[..., 1] * (1.0 - tally.score) - pairs[..., 0] * tally.score
    residual /= sums.sum(axis=1)[:, None]
    residual -= tally.residual
    return residual


def _draw_counts(rows: FloatArray, replicates: int, rng: np.random.Generator) -> FloatArray:
    """Draw the number of rows of each kind in bootstrap samples: (replicates, kinds)."""
    n = round(float(rows.sum()))
    if n > _ROW_BY_ROW * len(rows):
        return rng.multinomial(n, rows / rows.sum(), size=replicates).astype(np.float64)
    kind = np.repeat(np.arange(len(rows)), np.rint(rows).astype(np.int64))
    counts = np.empty((replicates, len(rows)))
    size = max(1, _ROWS_PER_CALL // n)
    for first in range(0, replicates, size):
        chunk = counts[first : first + size]
        kinds = kind[rng.integers(0, n, (len(chunk), n))]
        kinds += len(rows) * np.arange(len(chunk))[:, None]  # separate kinds for each replicate
        chunk[:] = np.bincount(kinds.ravel(), minlength=chunk.size).reshape(chunk.shape)
    return counts


def null_residuals(tally: Tally, draws: int, rng: np.random.Generator) -> FloatArray:
    """Draw residuals of a perfectly calibrated model with these scores: (draws, C)."""
    rows = tally.rows
    events = rng.binomial(rows.astype(np.int64), tally.chance, size=(draws, len(rows)))
    if tally.by_event is not None:  # the event determines the weight
        without, with_event = tally.by_event
        rest = rows - events
        gap = with_event * events * (1.0 - tally.score) - without * rest * tally.score
        total = with_event * events.sum(axis=1) + without * rest.sum(axis=1)
        return np.asarray(gap / total[:, None])
    scale = np.sqrt(tally.spread / np.where(rows > 0, rows, 1.0))
    return np.asarray((events - rows * tally.score) * scale / tally.total)


def null_tallies(tally: Tally, draws: int, rng: np.random.Generator) -> list[Tally]:
    """Draw tallies of a perfectly calibrated model, for errors with data-dependent bins."""
    rows = tally.rows
    events = rng.binomial(rows.astype(np.int64), tally.chance, size=(draws, len(rows)))
    return [tally.redraw(hits.astype(np.float64)) for hits in events]


def interval_from_sizes(
    estimate: float,
    noise: FloatArray,
    replicate: FloatArray,
    null: FloatArray,
    confidence: float = 0.95,
) -> Interval:
    r"""Return the interval of a calibration error with its bins held fixed.

    Let :math:`\|\cdot\|` be the size, g the true residual, :math:`\varepsilon` its noise and
    :math:`T = \|g + \varepsilon\|` the estimate. Then :math:`\|g\| \ge T - \|\varepsilon\|`, so
    low is T minus the 97.5 % quantile of the noise: bootstrapped, or drawn from the scores if that
    is larger (a bin without events has no bootstrap noise at all). And
    :math:`\|g\| \le T - s(\varepsilon)` for the linear form s that is tangent to the size at g, so
    high adds to T the distance from the mean of the replicates to their 2.5 % quantile, in place of
    the unknown s. Noise biases T only upwards, so no bias is subtracted from the upper end.

    The percentile bootstrap has 0 % coverage when the truth is 0 (it resamples a value that is
    already biased upwards), and the reflected bootstrap as little as 79 % in between.
    """
    tail = (1.0 - confidence) / 2.0
    largest = max(float(np.quantile(sizes, 1.0 - tail)) for sizes in (noise, null))
    low = max(0.0, estimate - largest)
    high = estimate + float(replicate.mean() - np.quantile(replicate, tail))
    return Interval(low, high, confidence, METHOD)


def floor_of_sizes(sizes: FloatArray | list[float]) -> Floor:
    """Return the floor from the errors of perfectly calibrated models."""
    return Floor(float(np.mean(sizes)), float(np.quantile(sizes, 0.95)))


def floor_by_redrawing(
    tally: Tally,
    compute: Callable[[list[Tally]], Sequence[float] | FloatArray],
    draws: int,
    rng: np.random.Generator,
) -> Floor:
    """Return the floor of an error with data-dependent bins or bandwidth, by full recomputation."""
    return floor_of_sizes(np.asarray(compute(null_tallies(tally, draws, rng))))
