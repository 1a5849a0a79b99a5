"""The search for 1/T: a bracketed Newton iteration whose passes over the rows stay in cache."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from calibrant.calibrators.base.rows import Rows
from calibrant.errors import InputError
from calibrant.inputs import FloatArray
from calibrant.metrics.problem import map_blocks

__all__ = ["best_inverse_temperature", "check_bounds"]

_GAIN = 1e-13
"""A Newton step that promises less NLL than this is the last one."""

_STEP = 1e-3
"""Nor is a step the last that moves 1/T by a larger share: where labels are separated the NLL
vanishes long before 1/T has reached its bound."""

_MOST_STEPS = 200
_ENTRIES = 1 << 15
"""Logits handled at a time: in float64 they and two temporaries stay in the processor's cache."""

_BLOCKS = 32

_SAMPLE = 1 << 20
"""Inputs with more logits than this start from the optimum of some of their rows."""


def check_bounds(lowest: float, highest: float) -> None:
    """Refuse bounds between which there is no temperature."""
    if not 0 < lowest < highest < math.inf:
        raise InputError(
            f"lowest and highest must be positive and in this order, got {lowest} and {highest}."
        )


def best_inverse_temperature(
    rows: Rows, bounds: tuple[float, float], smoothing: float = 0.0
) -> float:
    r"""Minimise the NLL over :math:`\beta = 1/T` within bounds.

    .. math:: L(\beta) = \sum_i m_i \Big[\log \sum_j e^{\beta s_{ij}}
              - \beta \big((1 - \alpha) s_{i y_i} + \alpha \bar s_i\big)\Big]

    s are logits less the largest of their row, m the weights scaled to sum to 1, :math:`\alpha` is
    `smoothing`: the share of each label that is spread over all classes. L is convex, so a bracket
    around the root of L' always shrinks; Newton's step is taken while it stays inside, and the
    geometric middle otherwise.
    """
    start = 1.0
    step = -(-rows.logits.size // _SAMPLE)
    if step > 1:
        some = rows.take(slice(None, None, step))
        start = best_inverse_temperature(some, bounds, smoothing)
    low, high = bounds
    beta = min(max(start, low), high)
    for _ in range(_MOST_STEPS):
        slope, curvature = _derivatives(rows, beta, smoothing)
        if slope > 0:
            high = beta
        else:
            low = beta
        newton = beta - slope / curvature if curvature > 0 else math.nan
        if low <= newton <= high and _settled(beta, newton, slope, curvature):
            return newton
        if high - low <= 1e-15 * high:
            return beta
        beta = newton if low < newton < high else _outside(newton, low, high, bounds)
    return beta


def _settled(beta: float, newton: float, slope: float, curvature: float) -> bool:
    return 0.5 * slope * slope / curvature < _GAIN and abs(newton - beta) < _STEP * beta


def _outside(newton: float, low: float, high: float, bounds: tuple[float, float]) -> float:
    """Choose the next point where Newton's step leaves the bracket."""
    # A step beyond a bound that was never tried: try the bound itself, it may be the answer.
    if newton >= high == bounds[1]:
        return high
    if newton <= low == bounds[0]:
        return low
    return math.sqrt(low * high)


def _derivatives(rows: Rows, beta: float, smoothing: float) -> tuple[float, float]:
    """Return L' and L'' at beta."""
    columns = 2 if rows.logits.ndim == 1 else rows.logits.shape[1]

    size = max(1, _ENTRIES // columns)

    def work(many: slice) -> list[float]:
        sums = [0.0, 0.0]
        for start in range(many.start, many.stop, size):
            part = rows.take(slice(start, min(start + size, many.stop)))
            mean, variance = _block_moments(part, beta, smoothing)
            weights = 1.0 if part.weights is None else part.weights
            sums[0] += float((weights * mean).sum())
            sums[1] += float((weights * variance).sum())
        return sums

    # A thread takes many blocks at a time: handing over each of them would cost as much as it.
    costly = rows.logits.size > 1 << 19
    sums = map_blocks(work, rows.n, costly=costly, size=_BLOCKS * size)
    slope, curvature = np.sum(sums, axis=0) / rows.total
    return float(slope), float(curvature)


def _block_moments(block: Rows, beta: float, smoothing: float) -> tuple[FloatArray, FloatArray]:
    """Return E[s] less its target, and Var[s], of each row under softmax(beta s)."""
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
