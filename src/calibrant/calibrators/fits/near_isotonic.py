"""Near-isotonic regression: the whole path from the data to the isotonic fit."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray

__all__ = ["NearIsotonicPath", "near_isotonic_path"]

_SAME = 1e-9
"""Penalties this close, relative to their size, are one break that rounding has split."""


@dataclass(frozen=True)
class NearIsotonicPath:
    r"""All solutions of one near-isotonic regression.

    .. math:: \min_\beta\; \tfrac12 \sum_i w_i (y_i - \beta_i)^2
              + \lambda \sum_i (\beta_i - \beta_{i+1})_+

    y are the responses in the order of the scores, w their weights, :math:`\lambda` the price of
    falling. At 0 the solution is y itself. As :math:`\lambda` grows neighbours become equal and
    stay so; once nothing falls any more it is the isotonic regression of y. A block of equal values
    with weight W and weighted sum of responses H has the value

    .. math:: \beta = \frac{H + \lambda (\phi_l - \phi_r)}{W}

    where :math:`\phi` is 1 if the response falls across the block's left or right border, else 0:
    neighbours meet, but never change sides.

    Parameters
    ----------
    mass : (m,) weights w
    sums : (m,) weighted responses w y
    falls : (m + 1,) 1.0 where y falls from the entry before to this one; 0.0 at both ends
    times : (m - 1,) the penalty at which each entry joins the one before, infinite for never
    """

    mass: FloatArray
    sums: FloatArray
    falls: FloatArray
    times: FloatArray

    @property
    def breaks(self) -> FloatArray:
        """The penalties above 0 at which blocks join, ascending, each once."""
        found = np.unique(self.times[np.isfinite(self.times) & (self.times > 0)])
        if not len(found):
            return found
        last = np.append(found[1:] > found[:-1] * (1 + _SAME), True)
        return np.asarray(found[last & (found > _SAME * found[-1])])

    def starts(self, penalty: float) -> IntArray:
        """Return where each block of the solution begins."""
        return np.concatenate([[0], np.flatnonzero(self.times > penalty) + 1])

    def blocks(self, penalty: float) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Return starts, weights, weighted sums and values of the solution's blocks."""
        starts = self.starts(penalty)
        mass, sums = (np.add.reduceat(part, starts) for part in (self.mass, self.sums))
        ends = np.append(starts[1:], len(self.mass))
        falls = self.falls[starts] - self.falls[ends]
        return starts, mass, sums, (sums + penalty * falls) / mass

    def fit(self, penalty: float) -> FloatArray:
        """Return the solution at a penalty from 0 up to the last break, or beyond it."""
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
    1 falls to 0. Each moves by the penalty, so that they meet at 1/2, at a penalty of 1/2:

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
    joined = [np.add.reduceat(part, starts) for part in (mass, sums)]
    borders = falls[np.append(starts, len(mass))]
    times[differ] = _joining_times(joined[0].tolist(), joined[1].tolist(), borders.tolist())
    return NearIsotonicPath(mass, sums, falls, times)


def _joining_times(mass: list[float], sums: list[float], falls: list[float]) -> NDArray[np.float64]:
    """Join the blocks that meet next, again and again; a heap says which.

    A block is known by its first entry. Only the two borders of a new block change their times.
    """
    m = len(mass)
    before, after = list(range(-1, m - 1)), list(range(1, m + 1))
    times = [np.inf] * m

    def meeting(at: int) -> float:
        """Return the penalty at which the block that begins here meets the one before it."""
        left = before[at]
        rise = (falls[left] - falls[at]) * mass[at] - (falls[at] - falls[after[at]]) * mass[left]
        return (sums[at] * mass[left] - sums[left] * mass[at]) / rise if rise else np.inf

    waiting = [meeting(at) for at in range(1, m)]
    due = [0.0, *waiting]
    heap = [(time, at) for at, time in enumerate(waiting, start=1) if time < np.inf]
    heapify(heap)
    now = 0.0
    while heap:
        time, at = heappop(heap)
        if due[at] != time or times[at] < np.inf:
            continue  # a border that has gone, or whose time has changed since
        now = times[at] = max(now, time)  # rounding must not turn back
        left, right = before[at], after[at]
        mass[left] += mass[at]
        sums[left] += sums[at]
        after[left] = right
        if right < m:
            before[right] = left
        for border in (left, right):
            if 0 < border < m:
                due[border] = meeting(border)
                if due[border] < np.inf:
                    heappush(heap, (due[border], border))
    return np.array(times[1:])
