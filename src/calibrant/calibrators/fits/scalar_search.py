"""The lowest point of a function of one positive number that may have several valleys."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.calibrators.base.rows import Rows

__all__ = ["lowest_point", "thinned"]

_PER_DECADE = 3
_VALLEYS = 3
_SAMPLE = 1 << 16
_PRECISION = {"xatol": 1e-8}
"""In logarithms; near its lowest point a function does not tell nearer numbers apart."""

Value = Callable[[float], float]


def lowest_point(
    value: Value, bounds: tuple[float, float], *, coarse: Value | None = None
) -> float:
    """Minimise `value` between two positive bounds.

    A grid of three points to the factor 10 finds the valleys; the three lowest are searched by
    Brent's method in logarithms. A bound that is as low as what was found wins.
    """
    from scipy.optimize import minimize_scalar

    low, high = np.log(bounds)
    points = max(3, int(np.ceil((high - low) / np.log(10.0) * _PER_DECADE)) + 1)
    grid = np.linspace(low, high, points)
    heights = np.array([(coarse or value)(float(np.exp(x))) for x in grid])
    around = np.concatenate([[np.inf], heights, [np.inf]])
    valleys = np.flatnonzero((heights <= around[:-2]) & (heights <= around[2:]))
    found = [*map(float, bounds)]
    for at in valleys[np.argsort(heights[valleys], kind="stable")][:_VALLEYS]:
        sides = grid[max(at - 1, 0)], grid[min(at + 1, points - 1)]
        best = minimize_scalar(
            lambda x: value(float(np.exp(x))), bounds=sides, method="bounded", options=_PRECISION
        )
        found.append(float(np.exp(best.x)))
    return min(found, key=value)


def thinned(rows: Rows) -> Rows:
    """Return every so many rows of a large input, enough to tell valleys apart."""
    return rows.take(slice(None, None, max(1, rows.logits.size // _SAMPLE)))
