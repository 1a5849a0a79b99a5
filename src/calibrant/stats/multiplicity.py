"""Several tests at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["holm"]


def holm(p_values: Sequence[float]) -> NDArray[np.float64]:
    """Adjust p-values so that all of them together raise a false alarm at most 5 % of the time.

    The smallest is multiplied by m, the next by m - 1 and so on, never falling below an earlier
    one (Holm 1979). It assumes nothing about how the tests depend on each other.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * (len(p) - np.arange(len(p)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return adjusted
