"""Bets against a mean: evidence that holds at any n, for any bounded numbers."""

from __future__ import annotations

import math

import numpy as np

from calibrant.inputs import FloatArray

__all__ = ["BETS", "log_evidence", "mean_upper_bound", "running_log_evidence"]

BETS = 0.9 * 0.5 ** np.arange(12)
"""Shares of the largest bet that can never lose everything; evidence is the mean over them."""


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
    total = np.full(len(gains), -np.inf)
    for bet in BETS / -worst:
        np.logaddexp(total, np.cumsum(np.log1p(bet * gains)), out=total)
    return np.asarray(total - math.log(len(BETS)))


def log_evidence(gains: FloatArray, worst: float) -> float:
    """Return `running_log_evidence` after the last gain.

    Examples
    --------
    >>> round(log_evidence(np.array([1.0, 1.0, -1.0]), -1.0), 3)
    -0.01
    """
    sums = [float(np.log1p(bet * gains).sum()) for bet in BETS / -worst]
    return float(np.logaddexp.reduce(sums)) - math.log(len(BETS))


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
    heavy = np.ones(len(values)) if weights is None else weights

    def believed(mean: float) -> bool:
        gains = heavy * (mean - values)
        return log_evidence(gains, largest_weight * (mean - high)) >= -math.log(delta)

    below, above = low, high
    for _ in range(40):
        middle = (below + above) / 2
        below, above = (below, middle) if believed(middle) else (middle, above)
    return above
