r"""Calibration errors as seminorms of the residual.

With :math:`R_c` the share by which events exceed the score at each score c, every calibration error
here is a seminorm of R once its bins or bandwidth are held fixed: sums over bins, running sums,
smoothed sums. Intervals and floors of all of them follow from this common form.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.metrics.tally import Tally, sum_between

Seminorm = Callable[[FloatArray], FloatArray]  # Maps residuals (..., C) to their sizes (...)


def binned_size(tally: Tally, edges: FloatArray, norm: float = 1) -> Seminorm:
    r"""Seminorm over bins: :math:`\sum_b |R_b|`, :math:`\sqrt{\sum_b R_b^2/w_b}`, max |R_b|/w_b.

    :math:`R_b` is the residual summed over bin b and :math:`w_b` the bin's share of the mass.
    """
    share = tally.per_bin(edges, tally.mass) / tally.total
    safe = np.where(share > 0, share, 1.0)
    starts = tally.starts(edges)

    def size(residual: FloatArray) -> FloatArray:
        gap = np.abs(sum_between(residual, starts))
        if norm == 1:
            return np.asarray(gap.sum(axis=-1))
        if norm == 2:
            return np.asarray(np.sqrt((gap**2 / safe).sum(axis=-1)))
        return np.asarray((gap / safe).max(axis=-1))

    return size


def running_size(residual: FloatArray) -> FloatArray:
    """Return the largest absolute running sum of the residual (Kolmogorov-Smirnov)."""
    return np.asarray(np.abs(np.cumsum(residual, axis=-1)).max(axis=-1))


def smoothed_size(tally: Tally, sigma: float) -> Seminorm:
    r"""Seminorm after smoothing: :math:`\int_0^1 |\sum_c R_c K_\sigma(t, s_c)|\,dt`.

    :math:`K_\sigma` is the Gaussian kernel of width sigma, reflected at 0 and 1.
    """
    points = int(np.clip(np.ceil(4.0 / sigma), 200, 2000))
    grid = (np.arange(points) + 0.5) / points
    kernel = np.zeros((len(tally.score), points))
    for shift in range(-1, 2):  # further reflections matter only for sigma near 1
        for sign in (1.0, -1.0):
            distance = (grid[None, :] - sign * tally.score[:, None] - 2.0 * shift) / sigma
            kernel += np.exp(-0.5 * distance**2)
    kernel /= sigma * np.sqrt(2.0 * np.pi)

    def size(residual: FloatArray) -> FloatArray:
        return np.asarray(np.abs(residual @ kernel).mean(axis=-1))

    return size
