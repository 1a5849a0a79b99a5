"""Smooth calibration error with a data-driven bandwidth instead of bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.inputs import FloatArray, Target, as_scored_rows, resolve_single_target
from calibrant.metrics.problem import target_problem
from calibrant.metrics.tally import Tally

_GRID = 8192  # cells of the residual histogram, much narrower than any bandwidth in use
_GRIDS_PER_BATCH = 16  # grids processed together; their transforms fit into the cache


def ece_smooth(
    labels: Any,
    probs: Any,
    *,
    target: Target | None = None,
    weights: Any = None,
    classes: Sequence[Any] | None = None,
) -> float:
    r"""Smooth ECE: the bandwidth :math:`\sigma` at which the smoothed error equals it.

    .. math:: \mathrm{smECE}_\sigma = \int_0^1 \Big|\frac{1}{N}\sum_i (y_i - s_i)
              K_\sigma(t, s_i)\Big|\,dt, \qquad \mathrm{smECE} = \sigma^*: \mathrm{smECE}_{\sigma^*}
              = \sigma^*

    with :math:`K_\sigma` the Gaussian kernel of width :math:`\sigma` reflected at 0 and 1. It is
    continuous in the scores, unlike a binned error. Residuals are put on a grid of 8,192 cells; a
    reflected Gaussian is a product in the cosine transform, so each bandwidth costs one transform
    for any n.

    Examples
    --------
    Scores of 0.6 for events that always occur: the error is 0.4 at any bandwidth.

    >>> round(ece_smooth([1, 1, 1], [0.6, 0.6, 0.6]), 3)
    0.4

    References
    ----------
    Blasiok & Nakkiran (2024), ICLR, section 3.
    """
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    scores, events = target_problem(scored, resolve_single_target(target, len(scored.classes)))
    gap: FloatArray = events - scores.astype(np.float64, copy=False)
    mass = scored.weights
    total = float(len(gap)) if mass is None else float(mass.sum())
    return fixed_point(residual_grid(scores, gap if mass is None else gap * mass) / total)


def tally_smooth(tally: Tally, *, points: int = _GRID) -> float:
    """Compute the smooth ECE of a tally."""
    return fixed_point(residual_grid(tally.score, tally.residual, points))


def tallies_smooth(tallies: Sequence[Tally], *, points: int = _GRID) -> FloatArray:
    """Compute the smooth ECE of several tallies."""
    grids = [residual_grid(tally.score, tally.residual, points) for tally in tallies]
    starts = range(0, len(grids), _GRIDS_PER_BATCH)
    batches = (grids[start : start + _GRIDS_PER_BATCH] for start in starts)
    return np.concatenate([fixed_points(np.stack(batch)) for batch in batches])


def residual_grid(scores: Any, residual: FloatArray, points: int = _GRID) -> FloatArray:
    """Distribute residuals over the grid, each between the two cells next to its score."""
    position = np.clip(scores.astype(np.float64, copy=False) * points - 0.5, 0.0, points - 1.0)
    left = np.minimum(position.astype(np.int64), points - 2)
    right = position - left
    out: FloatArray = np.bincount(left, residual * (1.0 - right), points).astype(np.float64)
    out += np.bincount(left + 1, residual * right, points)
    return out


def fixed_point(grid: FloatArray) -> float:
    """Find the bandwidth that equals its error; the error decreases with the bandwidth."""
    return float(fixed_points(grid[None])[0])


def fixed_points(grids: FloatArray) -> FloatArray:
    """Find the bandwidths of several grids (D, points) by simultaneous bisection."""
    from scipy.fft import dct, idct

    points = grids.shape[1]
    waves, frequency = dct(grids), np.pi * np.arange(points)

    def error(sigma: FloatArray) -> FloatArray:
        damped = waves * np.exp(-0.5 * (frequency * sigma[:, None]) ** 2)
        return np.asarray(np.abs(idct(damped)).sum(axis=1))

    # Below two cells the discretisation would matter.
    low, high = np.full(len(grids), 2.0 / points), np.ones(len(grids))
    least = error(low)
    small = least <= low
    while (high - low).max() > 1e-6:
        middle = 0.5 * (low + high)
        above = error(middle) > middle
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(small, least, 0.5 * (low + high))
