"""The gap between the last score that is acted on and the first that is not."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["clear_of_rounding", "number_between"]

_ULPS = 8
"""Numbers that are further apart stay in order when they are computed in another way."""


def number_between(low: float, high: float, kind: type[np.floating[Any]] = np.float64) -> float:
    """Return a number with few digits well inside a gap: above `low` and at most `high`.

    Every number of the gap decides the same about the rows at hand, and all of them are certified
    together. One near an end would decide otherwise about a score that was rounded on its way, or
    when a person copies it; where the gap is too narrow for another number, `high` is left.

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
        found = float(f"{middle:.{digits}g}")
        if abs(found - middle) <= quarter and low < kind(found) <= high and low < found:
            return found
    return high


def clear_of_rounding(
    low: float, threshold: float, high: float, kind: type[np.floating[Any]] = np.float64
) -> bool:
    """Say whether a threshold is so far from both scores that rounding does not change sides.

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
