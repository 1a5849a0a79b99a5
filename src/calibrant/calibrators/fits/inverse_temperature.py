"""Fit of 1/T by a bracketed Newton iteration with cache-sized blocks."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.errors import InputError
from calibrant.inputs import FloatArray
from calibrant.metrics.problem import map_blocks

_MIN_GAIN = 1e-13  # Stop when the predicted decrease of the NLL is below this

_MAX_RELATIVE_STEP = 1e-3
"""Continue while 1/T changes by a larger share: with separated labels the NLL vanishes long before
1/T has reached its bound."""

_MAX_STEPS = 200
_BLOCK_ENTRIES = 1 << 15
"""Logits per block: in float64 they and two temporaries fit in the CPU cache."""

_BLOCKS_PER_TASK = 32

_SAMPLE_ENTRIES = 1 << 20  # Inputs with more logits than this start from the optimum of a subsample


def check_bounds(lowest: float, highest: float) -> None:
    """Refuse bounds that are not positive and increasing."""
    if not 0 < lowest < highest < math.inf:
        raise InputError(
            f"lowest and highest must be positive and in this order, got {lowest} and {highest}."
        )


def best_inverse_temperature(
    rows: CalibrationRows, bounds: tuple[float, float], smoothing: float = 0.0
) -> float:
    r"""Minimise the NLL over :math:`\beta = 1/T` within bounds.

    .. math:: L(\beta) = \sum_i m_i \Big[\log \sum_j e^{\beta s_{ij}}
              - \beta \big((1 - \alpha) s_{i y_i} + \alpha \bar s_i\big)\Big]

    s are logits less the largest of their row, m the weights scaled to sum to 1, :math:`\alpha` is
    `smoothing`: the share of each label that is spread over all classes. L is convex, so a bracket
    around the root of L' always shrinks; the Newton step is taken while it stays inside, and the
    geometric mean of the bracket otherwise.
    """
    start = 1.0
    step = -(-rows.logits.size // _SAMPLE_ENTRIES)
    if step > 1:
        sample = rows.take(slice(None, None, step))
        start = best_inverse_temperature(sample, bounds, smoothing)
    low, high = bounds
    beta = min(max(start, low), high)
    for _ in range(_MAX_STEPS):
        slope, curvature = _derivatives(rows, beta, smoothing)
        if slope > 0:
            high = beta
        else:
            low = beta
        newton = beta - slope / curvature if curvature > 0 else math.nan
        if low <= newton <= high and _has_converged(beta, newton, slope, curvature):
            return newton
        if high - low <= 1e-15 * high:
            return beta
        beta = newton if low < newton < high else _fallback_point(newton, low, high, bounds)
    return beta


def _has_converged(beta: float, newton: float, slope: float, curvature: float) -> bool:
    return (
        0.5 * slope * slope / curvature < _MIN_GAIN
        and abs(newton - beta) < _MAX_RELATIVE_STEP * beta
    )


def _fallback_point(newton: float, low: float, high: float, bounds: tuple[float, float]) -> float:
    """Return the next point if the Newton step leaves the bracket."""
    # The step passes a bound that was not evaluated yet: try the bound, it may be optimal.
    if newton >= high == bounds[1]:
        return high
    if newton <= low == bounds[0]:
        return low
    return math.sqrt(low * high)


def _derivatives(rows: CalibrationRows, beta: float, smoothing: float) -> tuple[float, float]:
    """Return L' and L'' at beta."""
    columns = 2 if rows.logits.ndim == 1 else rows.logits.shape[1]

    size = max(1, _BLOCK_ENTRIES // columns)

    def sum_moments(span: slice) -> list[float]:
        sums = [0.0, 0.0]
        for start in range(span.start, span.stop, size):
            part = rows.take(slice(start, min(start + size, span.stop)))
            mean, variance = _block_moments(part, beta, smoothing)
            weights = 1.0 if part.weights is None else part.weights
            sums[0] += float((weights * mean).sum())
            sums[1] += float((weights * variance).sum())
        return sums

    # A task covers many blocks, because dispatching a block costs as much as computing it.
    costly = rows.logits.size > 1 << 19
    sums = map_blocks(sum_moments, rows.n, costly=costly, size=_BLOCKS_PER_TASK * size)
    slope, curvature = np.sum(sums, axis=0) / rows.total
    return float(slope), float(curvature)


def _block_moments(
    block: CalibrationRows, beta: float, smoothing: float
) -> tuple[FloatArray, FloatArray]:
    """Return E[s] minus its target, and Var[s], of each row under softmax(beta s)."""
    if block.logits.ndim == 1:
        s = block.logits.astype(np.float64, copy=False)
        p = expit(beta * s)
        target = (1.0 - smoothing) * block.labels + 0.5 * smoothing
        return s * (p - target), s * s * p * (1.0 - p)
    shifted = block.logits.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    target = shifted[np.arange(block.n), block.labels]
    if smoothing:
        target = (1.0 - smoothing) * target + smoothing * shifted.mean(axis=1)
    e = np.exp(beta * shifted)
    total = np.einsum("ij->i", e)
    e *= shifted
    mean = np.einsum("ij->i", e) / total
    square = np.einsum("ij,ij->i", e, shifted) / total
    return mean - target, np.maximum(square - mean * mean, 0.0)
