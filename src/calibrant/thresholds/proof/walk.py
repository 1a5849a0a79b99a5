"""The walk down the ranks: at which positions a share of positives is certain enough.

The proof that it keeps its promise, ties included, is in docs/threshold-proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray

__all__ = ["binomial_passes", "fewest_rows", "plan", "walk"]

Passes = Callable[[IntArray, float], NDArray[np.bool_]]

RATIO = 2.0
"""Main starts lie this factor apart."""

FADE = 0.8
"""Each main start gets this much of the share of the one before: early ranks need it most."""

FILL = 0.1
"""The part of delta that fills the gaps between main starts, evenly."""

FILL_RATIO = 1.07
"""Filling starts lie this factor apart: no long stretch of good precision begins unseen."""

_FIRST_LOOK = 256

_FEW = 20_000  # of so many rows all bounds are taken at once: each of many starts looks at some


def plan(n: int, target: float, delta: float) -> tuple[IntArray, FloatArray]:
    r"""Lay out the starts of the walk, from n, target and delta alone.

    The first main start is where straight hits alone can pass at its share,
    :math:`\tau^k \le \alpha_1`; the next ones lie twice as far down each. A tenth of delta is
    spread over starts 7 % apart, for precision that is good in the middle ranks only.

    Examples
    --------
    >>> starts, shares = plan(45, 0.85, 0.05)
    >>> starts, shares.round(4)
    (array([19]), array([0.05]))
    >>> starts, shares = plan(1000, 0.85, 0.05)
    >>> starts[:7], float(shares.sum().round(12))
    (array([28, 56, 57, 60, 65, 69, 74]), 0.05)
    """
    filling, share = _filling(n, target, FILL * delta)
    main, shares = _main(n, target, delta if len(filling) == 0 else (1 - FILL) * delta)
    starts = np.union1d(main, filling)
    levels = np.zeros(len(starts))
    levels[np.searchsorted(starts, main)] = shares
    levels[np.searchsorted(starts, filling)] += share
    return starts, levels


_known_plan = lru_cache(maxsize=256)(plan)  # simulations ask for the same one thousands of times


def _main(n: int, target: float, delta: float) -> tuple[IntArray, FloatArray]:
    """Lay out the starts that double."""
    found: tuple[IntArray, FloatArray] = (np.empty(0, dtype=np.int64), np.empty(0))
    for number in range(1, 1100):
        shares = delta * FADE ** np.arange(number) * (1 - FADE) / (1 - FADE**number)
        starts = fewest_rows(target, float(shares[0])) * RATIO ** np.arange(number)
        if starts[-1] > n:
            break
        found = starts.astype(np.int64), np.asarray(shares)
    return found


def _filling(n: int, target: float, delta: float) -> tuple[IntArray, float]:
    """Lay out the starts between: the first is where straight hits can pass at an even share."""
    first = fewest_rows(target, delta)
    while RATIO**2 * first <= n:  # with fewer rows there are no gaps worth filling
        number = int(math.log(n / first) / math.log(FILL_RATIO)) + 1
        starts = np.unique((first * FILL_RATIO ** np.arange(number)).astype(np.int64))
        needed = fewest_rows(target, delta / len(starts))
        if needed <= first:
            return starts, delta / len(starts)
        first = needed
    return np.empty(0, dtype=np.int64), 0.0


def fewest_rows(target: float, level: float) -> int:
    """Return how many rows, all of them hits, prove a share of `target` at this level.

    Examples
    --------
    >>> fewest_rows(0.85, 0.05)
    19
    """
    return max(1, math.ceil(math.log(level) / math.log(target) - 1e-12))


def walk(n: int, target: float, delta: float, passes: Passes) -> list[tuple[int, int]]:
    """Walk down the ranks and return the stretches of positions that are certified.

    A level is alive while every position passes; it is lost where one fails, and every start adds
    its share. With probability 1 - delta no certified position misses the target.

    Examples
    --------
    Forty rows that are all positive, then forty that are not:

    >>> hits = np.minimum(np.arange(1, 81), 40)
    >>> walk(80, 0.8, 0.05, binomial_passes(hits, 0.8))
    [(18, 43)]
    """
    starts, shares = _known_plan(n, target, delta)
    found: list[tuple[int, int]] = []
    alive = 0.0
    for start, stop, share in zip(starts, np.append(starts, n + 1)[1:], shares, strict=True):
        alive += share
        last = _last_passing(int(start), int(stop), alive, passes)
        if last >= start and found and found[-1][1] == start - 1:
            found[-1] = (found[-1][0], last)
        elif last >= start:
            found.append((int(start), last))
        if last < stop - 1:
            alive = 0.0
    return found


def binomial_passes(hits: NDArray[Any], target: float) -> Passes:
    r"""Return the exact test of each position: :math:`P(Bin(k, \tau) \ge h_k) \le` level.

    Most positions are decided by a bound from either side (Chernoff's, and what is left of it
    after Stirling's formula); the exact tail is computed only where those do not tell.
    """
    kept = _bounds(hits, np.arange(1, len(hits) + 1), target) if len(hits) <= _FEW else None

    def passes(positions: IntArray, level: float) -> NDArray[np.bool_]:
        if kept is None:
            low, high = _bounds(hits[positions - 1], positions, target)
        else:
            low, high = kept[0][positions - 1], kept[1][positions - 1]
        needed = -math.log(level)
        sure = np.asarray(low >= needed)
        unsure = ~sure & (high >= needed)
        if unsure.any():
            k = positions[unsure]
            sure[unsure] = _upper_tail(hits[k - 1], k, target) <= level
        return sure

    return passes


def _bounds(hits: NDArray[Any], positions: IntArray, target: float) -> tuple[FloatArray, ...]:
    """Return what -log P is at least and at most; no more hits than expected never pass."""
    k, h = positions.astype(np.float64), hits.astype(np.float64)
    exponent = _chernoff(h, k, target)
    # P >= exp(-exponent) / sqrt(8 h (1 - h/k)), and at least exp(-exponent) where h = k.
    slack = 0.5 * np.log(np.maximum(8.0 * h * (1.0 - h / k), 1.0))
    return exponent, np.where(h > target * k, exponent + slack, -np.inf)


def _last_passing(start: int, stop: int, level: float, passes: Passes) -> int:
    """Return the last position before `stop` up to which all pass; start - 1 where none does."""
    look = _FIRST_LOOK
    while start < stop:
        end = min(stop, start + look)
        found = passes(np.arange(start, end), level)
        if not found.all():
            return start + int(np.argmin(found)) - 1
        start, look = end, 2 * look
    return stop - 1


def _chernoff(h: FloatArray, k: FloatArray, target: float) -> FloatArray:
    """Return k KL(h/k, target), and 0 where no more hits came than expected."""
    from scipy.special import xlogy

    share = h / k
    distance = xlogy(share, share / target) + xlogy(1 - share, (1 - share) / (1 - target))
    return np.where(share > target, k * distance, 0.0)


def _upper_tail(hits: NDArray[Any], k: IntArray, target: float) -> FloatArray:
    from scipy.special import betainc

    return np.asarray(betainc(hits.astype(np.float64), k - hits + 1.0, target))
