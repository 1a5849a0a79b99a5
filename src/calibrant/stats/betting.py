"""Bets against a mean: evidence that holds at any n, for any bounded numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from calibrant.inputs import FloatArray, IntArray

__all__ = [
    "bets_against",
    "log_evidence",
    "mean_of_bets",
    "mean_upper_bound",
    "running_log_evidence",
    "switched_log_evidence",
]

BETS = 0.9 * 0.5 ** np.arange(12)
"""Shares of the largest bet that can never lose everything; evidence is the mean over them."""


def bets_against(worst: float) -> FloatArray:
    """Return the bets, given the least that a gain can be, a negative number known beforehand."""
    return np.asarray(BETS / -worst)


def mean_of_bets(log_products: Iterable[FloatArray | float]) -> FloatArray:
    """Return the log of the mean over all bets of products whose logs are given, bet by bet."""
    total: FloatArray | None = None
    for one in log_products:
        total = np.asarray(one) if total is None else np.logaddexp(total, one)
    assert total is not None  # there are bets
    return np.asarray(total - math.log(len(BETS)))


def running_log_evidence(gains: FloatArray, worst: float) -> FloatArray:
    r"""Return the log of the evidence that gains have a positive mean, after 1, 2, ... n of them.

    .. math:: E_k = \frac{1}{|\Lambda|} \sum_{\lambda \in \Lambda} \prod_{i \le k} (1 + \lambda x_i)

    If the mean of each gain is at most 0, :math:`E_k` has mean at most 1 for every k, so by
    Markov's inequality :math:`P(E_k \ge 1/\alpha) \le \alpha`: :math:`1/E_k` is a p-value. The
    bets :math:`\lambda` are fixed beforehand, so the order of the gains does not matter. The
    p-values of different k are not independent, and no maximum over k is taken.

    Parameters
    ----------
    gains : (n,) numbers :math:`x_i`
    worst : the least that a gain can be, a negative number known beforehand

    Examples
    --------
    >>> running_log_evidence(np.array([1.0, 1.0, -1.0]), -1.0).round(3)
    array([ 0.14 ,  0.329, -0.01 ])

    References
    ----------
    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting.
    """
    return mean_of_bets(np.cumsum(np.log1p(bet * gains)) for bet in bets_against(worst))


def switched_log_evidence(
    before: FloatArray, after: FloatArray, switched: IntArray, worst: float
) -> FloatArray:
    """Return the log evidence when the first rows have other gains than the rest.

    Parameters
    ----------
    before, after : (n,) the gain of each row, and its gain once it has been switched
    switched : (M,) how many rows from the first on are switched
    worst : the least that a gain can be

    Examples
    --------
    >>> before, after = np.array([1.0, -1.0]), np.array([-1.0, 1.0])
    >>> found = switched_log_evidence(before, after, np.array([0, 1, 2]), -1.0)
    >>> found[0] == found[2], bool(found[1] < found[0])
    (np.True_, True)
    """

    def logs(bet: float) -> FloatArray:
        old, new = np.log1p(bet * before), np.log1p(bet * after)
        return np.asarray(old.sum() + np.append(0.0, np.cumsum(new - old))[switched])

    return mean_of_bets(logs(bet) for bet in bets_against(worst))


def log_evidence(gains: FloatArray, worst: float, counts: FloatArray | None = None) -> float:
    """Return `running_log_evidence` after the last gain.

    `counts` says how often each gain came; by default once.

    Examples
    --------
    >>> round(log_evidence(np.array([1.0, 1.0, -1.0]), -1.0), 3)
    -0.01
    """
    times = np.ones(len(gains)) if counts is None else counts
    return float(mean_of_bets(float(times @ np.log1p(bet * gains)) for bet in bets_against(worst)))


def mean_upper_bound(
    values: FloatArray,
    low: float,
    high: float,
    *,
    delta: float,
    weights: FloatArray | None = None,
    largest_weight: float = 1.0,
) -> float:
    r"""Return an upper bound of a (weighted) mean that holds with probability 1 - delta.

    It is the smallest m whose gains :math:`w_i (m - x_i)` are believed to have a positive mean.

    Parameters
    ----------
    values : (n,) numbers within [low, high]
    low, high : the range they are known to stay in
    delta : the chance of a bound that is too small
    weights : inverse inclusion probabilities
    largest_weight : the most that any row could weigh, in this sample or another

    Examples
    --------
    >>> zeros = np.zeros(100)
    >>> round(mean_upper_bound(zeros, 0.0, 1.0, delta=0.05), 3)
    0.058
    """
    counts: FloatArray | None = None
    if weights is None:  # a million rows may hold four costs
        values, times = np.unique(values, return_counts=True)
        counts = times.astype(np.float64)
    heavy = np.ones(len(values)) if weights is None else weights

    def believed(mean: float) -> bool:
        gains = heavy * (mean - values)
        return log_evidence(gains, largest_weight * (mean - high), counts) >= -math.log(delta)

    below, above = low, high
    for _ in range(40):
        middle = (below + above) / 2
        below, above = (below, middle) if believed(middle) else (middle, above)
    return above
