"""The gap between the last score acted on and the first score passed over."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["clear_of_rounding", "number_between"]

_ULPS = 8
"""Numbers further apart than this keep their order under rounding errors."""


def number_between(low: float, high: float, kind: type[np.floating[Any]] = np.float64) -> float:
    """Return a number with few digits well inside a gap: above `low` and at most `high`.

    Every number in the gap decides the same about these rows, and all of them are certified
    together. A number near an end could change sides when a score is rounded or copied by hand; if
    the gap is too narrow for another number, `high` is returned.

    Examples
    --------
    >>> number_between(0.683757, 0.684391)
    0.684
    >>> number_between(0.3, np.nextafter(0.3, 1))
    0.30000000000000004
    """
    if not np.isfinite(low):
        return high
    middle, quarter = low + (high - low) / 2, (high - low) / 4
    for digits in range(1, 18):
        candidate = float(f"{middle:.{digits}g}")
        if abs(candidate - middle) <= quarter and low < kind(candidate) <= high and low < candidate:
            return candidate
    return high


def clear_of_rounding(
    low: float, threshold: float, high: float, kind: type[np.floating[Any]] = np.float64
) -> bool:
    """Return whether a threshold is far enough from both scores to be safe from rounding.

    Examples
    --------
    >>> clear_of_rounding(0.4, 0.5, 0.6)
    True
    >>> clear_of_rounding(1 - 1e-16, 1.0, 1.0)
    False
    """
    size = max(abs(threshold), float(np.finfo(kind).tiny))
    step = _ULPS * float(np.spacing(kind(size)))
    return low == -np.inf or low + step < threshold < high - step
