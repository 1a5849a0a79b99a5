"""Walk down the ranks: certify the positions at which a share of positives is high enough.

The proof of its guarantee, ties included, is in docs/threshold-proof.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray

Passes = Callable[[IntArray, float], NDArray[np.bool_]]

RATIO = 2.0  # Ratio of consecutive main starts

FADE = 0.8  # Ratio of the shares of consecutive main starts: early ranks need the largest

FILL = 0.1  # Part of delta spread evenly over the filling starts

FILL_RATIO = 1.07
"""Ratio of consecutive filling starts, dense enough to catch any long good stretch."""

_FIRST_LOOK = 256

_FEW = 20_000  # up to this many rows, all bounds are precomputed


def plan_starts(n: int, target: float, delta: float) -> tuple[IntArray, FloatArray]:
    r"""Plan the starts of the walk from n, target and delta alone.

    The first main start is where straight hits alone can pass at its share,
    :math:`\tau^k \le \alpha_1`; each next one is twice as far down. A tenth of delta is spread
    over starts 7 % apart, for precision that is good only in the middle ranks.
    """
    filling, share = _filling_starts(n, target, FILL * delta)
    main, shares = _main_starts(n, target, delta if len(filling) == 0 else (1 - FILL) * delta)
    starts = np.union1d(main, filling)
    levels = np.zeros(len(starts))
    levels[np.searchsorted(starts, main)] = shares
    levels[np.searchsorted(starts, filling)] += share
    return starts, levels


_cached_plan = lru_cache(maxsize=256)(
    plan_starts
)  # simulations repeat the same plan thousands of times


def _main_starts(n: int, target: float, delta: float) -> tuple[IntArray, FloatArray]:
    """Plan the main starts, which double."""
    best: tuple[IntArray, FloatArray] = (np.empty(0, dtype=np.int64), np.empty(0))
    for number in range(1, 1100):
        shares = delta * FADE ** np.arange(number) * (1 - FADE) / (1 - FADE**number)
        starts = fewest_rows(target, float(shares[0])) * RATIO ** np.arange(number)
        if starts[-1] > n:
            break
        best = starts.astype(np.int64), np.asarray(shares)
    return best


def _filling_starts(n: int, target: float, delta: float) -> tuple[IntArray, float]:
    """Plan the filling starts: the first is where straight hits pass at an even share."""
    first = fewest_rows(target, delta)
    while RATIO**2 * first <= n:  # with fewer rows the gaps are not worth filling
        number = int(math.log(n / first) / math.log(FILL_RATIO)) + 1
        starts = np.unique((first * FILL_RATIO ** np.arange(number)).astype(np.int64))
        needed = fewest_rows(target, delta / len(starts))
        if needed <= first:
            return starts, delta / len(starts)
        first = needed
    return np.empty(0, dtype=np.int64), 0.0


def fewest_rows(target: float, level: float) -> int:
    """Return how many rows, all of them hits, prove a share of `target` at this level."""
    return max(1, math.ceil(math.log(level) / math.log(target) - 1e-12))


def walk(n: int, target: float, delta: float, passes: Passes) -> list[tuple[int, int]]:
    """Walk down the ranks and return the certified ranges of positions.

    A level is alive while every position passes; it is lost where one fails, and every start adds
    its share. With probability 1 - delta no certified position misses the target.
    """
    starts, shares = _cached_plan(n, target, delta)
    ranges: list[tuple[int, int]] = []
    alive = 0.0
    for start, stop, share in zip(starts, np.append(starts, n + 1)[1:], shares, strict=True):
        alive += share
        last = _last_passing(int(start), int(stop), alive, passes)
        if last >= start and ranges and ranges[-1][1] == start - 1:
            ranges[-1] = (ranges[-1][0], last)
        elif last >= start:
            ranges.append((int(start), last))
        if last < stop - 1:
            alive = 0.0
    return ranges


def binomial_passes(hits: NDArray[Any], target: float) -> Passes:
    r"""Return the exact test of each position: :math:`P(Bin(k, \tau) \ge h_k) \le` level.

    Most positions are decided by upper and lower bounds (Chernoff's, and Chernoff's with Stirling's
    correction); the exact tail is computed only where those are inconclusive.
    """
    bounds = _bounds(hits, np.arange(1, len(hits) + 1), target) if len(hits) <= _FEW else None

    def passes(positions: IntArray, level: float) -> NDArray[np.bool_]:
        if bounds is None:
            low, high = _bounds(hits[positions - 1], positions, target)
        else:
            low, high = bounds[0][positions - 1], bounds[1][positions - 1]
        needed = -math.log(level)
        sure = np.asarray(low >= needed)
        unsure = ~sure & (high >= needed)
        if unsure.any():
            k = positions[unsure]
            sure[unsure] = _upper_tail(hits[k - 1], k, target) <= level
        return sure

    return passes


def _bounds(hits: NDArray[Any], positions: IntArray, target: float) -> tuple[FloatArray, ...]:
    """Return lower and upper bounds of -log P; at most the expected hits never pass."""
    k, h = positions.astype(np.float64), hits.astype(np.float64)
    exponent = _chernoff(h, k, target)
    # P >= exp(-exponent) / sqrt(8 h (1 - h/k)), and at least exp(-exponent) where h = k.
    slack = 0.5 * np.log(np.maximum(8.0 * h * (1.0 - h / k), 1.0))
    return exponent, np.where(h > target * k, exponent + slack, -np.inf)


def _last_passing(start: int, stop: int, level: float, passes: Passes) -> int:
    """Return the last position before `stop` up to which all pass; start - 1 if none does."""
    look = _FIRST_LOOK
    while start < stop:
        end = min(stop, start + look)
        passed = passes(np.arange(start, end), level)
        if not passed.all():
            return start + int(np.argmin(passed)) - 1
        start, look = end, 2 * look
    return stop - 1


def _chernoff(h: FloatArray, k: FloatArray, target: float) -> FloatArray:
    """Return k KL(h/k, target), and 0 if there are at most the expected hits."""
    from scipy.special import xlogy

    share = h / k
    distance = xlogy(share, share / target) + xlogy(1 - share, (1 - share) / (1 - target))
    return np.where(share > target, k * distance, 0.0)


def _upper_tail(hits: NDArray[Any], k: IntArray, target: float) -> FloatArray:
    from scipy.special import betainc

    return np.asarray(betainc(hits.astype(np.float64), k - hits + 1.0, target))
