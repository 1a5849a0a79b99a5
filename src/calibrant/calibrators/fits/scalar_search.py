"""Global minimisation of a function of one positive number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.calibrators.base.rows import CalibrationRows

_PER_DECADE = 3
_MAX_MINIMA = 3
_SAMPLE = 1 << 16
_PRECISION = {"xatol": 1e-8}  # In logarithms; a function is flat to rounding closer to its minimum

Value = Callable[[float], float]


def find_minimum(
    function: Value, bounds: tuple[float, float], *, coarse: Value | None = None
) -> float:
    """Minimise `function` between two positive bounds.

    A grid of three points per decade locates the local minima; the three lowest are refined by
    Brent's method in logarithms. Ties go to a bound.
    """
    from scipy.optimize import minimize_scalar

    low, high = np.log(bounds)
    points = max(3, int(np.ceil((high - low) / np.log(10.0) * _PER_DECADE)) + 1)
    grid = np.linspace(low, high, points)
    values = np.array([(coarse or function)(float(np.exp(x))) for x in grid])
    around = np.concatenate([[np.inf], values, [np.inf]])
    minima = np.flatnonzero((values <= around[:-2]) & (values <= around[2:]))
    candidates = [*map(float, bounds)]
    for at in minima[np.argsort(values[minima], kind="stable")][:_MAX_MINIMA]:
        sides = grid[max(at - 1, 0)], grid[min(at + 1, points - 1)]
        best = minimize_scalar(
            lambda x: function(float(np.exp(x))), bounds=sides, method="bounded", options=_PRECISION
        )
        candidates.append(float(np.exp(best.x)))
    return min(candidates, key=function)


def subsample_rows(rows: CalibrationRows) -> CalibrationRows:
    """Return every nth row of a large input, enough to locate the minima."""
    return rows.take(slice(None, None, max(1, rows.logits.size // _SAMPLE)))
