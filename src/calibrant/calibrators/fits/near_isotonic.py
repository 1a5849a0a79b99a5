"""Near-isotonic regression: the full path from the data to the isotonic fit."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray

__all__ = ["NearIsotonicPath", "near_isotonic_path"]

_RELATIVE_TOLERANCE = 1e-9
"""Penalties this close, relative to their size, are one break split by rounding."""


@dataclass(frozen=True)
class NearIsotonicPath:
    r"""All solutions of one near-isotonic regression.

    .. math:: \min_\beta\; \tfrac12 \sum_i w_i (y_i - \beta_i)^2
              + \lambda \sum_i (\beta_i - \beta_{i+1})_+

    y are the responses in the order of the scores, w their weights, :math:`\lambda` the
    penalty of a decrease. At 0 the solution is y itself. As :math:`\lambda` grows, neighbours
    become equal and stay so, up to the isotonic regression of y. A block of equal values
    with weight W and weighted sum of responses H has the value

    .. math:: \beta = \frac{H + \lambda (\phi_l - \phi_r)}{W}

    where :math:`\phi` is 1 if the response decreases across the block's left or right border, else
    0: neighbours meet, but never cross.

    Parameters
    ----------
    mass : (m,) weights w
    sums : (m,) weighted responses w y
    falls : (m + 1,) 1.0 where y decreases from the previous entry; 0.0 at both ends
    times : (m - 1,) the penalty at which each entry merges with the previous one, or infinity
    """

    mass: FloatArray
    sums: FloatArray
    falls: FloatArray
    times: FloatArray

    @property
    def breaks(self) -> FloatArray:
        """The distinct positive penalties at which blocks merge, ascending."""
        penalties = np.unique(self.times[np.isfinite(self.times) & (self.times > 0)])
        if not len(penalties):
            return penalties
        last = np.append(penalties[1:] > penalties[:-1] * (1 + _RELATIVE_TOLERANCE), True)
        return np.asarray(penalties[last & (penalties > _RELATIVE_TOLERANCE * penalties[-1])])

    def starts(self, penalty: float) -> IntArray:
        """Return the first index of each block of the solution."""
        return np.concatenate([[0], np.flatnonzero(self.times > penalty) + 1])

    def blocks(self, penalty: float) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Return starts, weights, weighted sums and values of the solution's blocks."""
        starts = self.starts(penalty)
        mass, sums = (np.add.reduceat(part, starts) for part in (self.mass, self.sums))
        ends = np.append(starts[1:], len(self.mass))
        falls = self.falls[starts] - self.falls[ends]
        return starts, mass, sums, (sums + penalty * falls) / mass

    def fit(self, penalty: float) -> FloatArray:
        """Return the solution at a penalty of 0 or more."""
        breaks = self.breaks
        highest = float(breaks[-1]) if len(breaks) else 0.0
        starts, _, _, values = self.blocks(min(penalty, highest))
        return np.repeat(values, np.diff(np.append(starts, len(self.mass))))

    def from_penalty(self, penalty: float) -> NearIsotonicPath:
        """Return the rest of the path, on the blocks of the solution at `penalty`."""
        starts, mass, sums, _ = self.blocks(penalty)
        falls = self.falls[np.append(starts, len(self.mass))]
        return NearIsotonicPath(mass, sums, falls, self.times[starts[1:] - 1])


def near_isotonic_path(mass: FloatArray, sums: FloatArray) -> NearIsotonicPath:
    """Compute the path of responses sums / mass with weights `mass`, in O(m log m).

    Examples
    --------
    1 is followed by 0. Each moves by the penalty, so they meet at 1/2, at a penalty of 1/2:

    >>> path = near_isotonic_path(np.ones(3), np.array([1.0, 0.0, 2.0]))
    >>> path.times
    array([0.5, inf])
    >>> path.fit(0.2), path.fit(9.0)
    (array([0.8, 0.2, 2. ]), array([0.5, 0.5, 2. ]))

    References
    ----------
    Tibshirani, Hoefling and Tibshirani, Nearly-isotonic regression, Technometrics 2011, the
    modified pool adjacent violators algorithm.
    """
    response = sums / mass
    falls = np.concatenate([[0.0], (response[:-1] > response[1:]).astype(np.float64), [0.0]])
    times = np.zeros(len(mass) - 1)
    differ = response[:-1] != response[1:]
    starts = np.concatenate([[0], np.flatnonzero(differ) + 1])
    merged = [np.add.reduceat(part, starts) for part in (mass, sums)]
    borders = falls[np.append(starts, len(mass))]
    times[differ] = _merge_times(merged[0].tolist(), merged[1].tolist(), borders.tolist())
    return NearIsotonicPath(mass, sums, falls, times)


def _merge_times(mass: list[float], sums: list[float], falls: list[float]) -> NDArray[np.float64]:
    """Merge the blocks with the smallest penalty, repeatedly, using a heap.

    A block is identified by its first entry. A merge changes only the two borders of the new block.
    """
    m = len(mass)
    before, after = list(range(-1, m - 1)), list(range(1, m + 1))
    times = [np.inf] * m

    def merge_penalty(at: int) -> float:
        """Return the penalty at which the block that starts here meets the previous one."""
        left = before[at]
        rise = (falls[left] - falls[at]) * mass[at] - (falls[at] - falls[after[at]]) * mass[left]
        return (sums[at] * mass[left] - sums[left] * mass[at]) / rise if rise else np.inf

    pending = [merge_penalty(at) for at in range(1, m)]
    due = [0.0, *pending]
    heap = [(time, at) for at, time in enumerate(pending, start=1) if time < np.inf]
    heapify(heap)
    now = 0.0
    while heap:
        time, at = heappop(heap)
        if due[at] != time or times[at] < np.inf:
            continue  # stale: the border is gone or its penalty has changed
        now = times[at] = max(now, time)  # keep the order despite rounding
        left, right = before[at], after[at]
        mass[left] += mass[at]
        sums[left] += sums[at]
        after[left] = right
        if right < m:
            before[right] = left
        for border in (left, right):
            if 0 < border < m:
                due[border] = merge_penalty(border)
                if due[border] < np.inf:
                    heappush(heap, (due[border], border))
    return np.array(times[1:])
