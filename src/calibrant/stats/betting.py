"""Betting tests of a mean: evidence valid at any n, for any bounded values."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from calibrant.inputs import FloatArray, IntArray

BETS = 0.9 * 0.5 ** np.arange(12)
"""Bets as fractions of the largest that cannot lose everything; evidence is their mean."""


def bets_against(worst: float) -> FloatArray:
    """Return the bets for a smallest possible gain `worst`, a negative number known beforehand."""
    return np.asarray(BETS / -worst)


def mean_of_bets(log_products: Iterable[FloatArray | float]) -> FloatArray:
    """Return the log of the mean over bets of the products whose logs are passed, bet by bet."""
    total: FloatArray | None = None
    for log_product in log_products:
        total = np.asarray(log_product) if total is None else np.logaddexp(total, log_product)
    assert total is not None  # BETS is not empty
    return np.asarray(total - math.log(len(BETS)))


def running_log_evidence(gains: FloatArray, worst: float) -> FloatArray:
    r"""Return the log evidence that gains have a positive mean, after each of the n gains.

    .. math:: E_k = \frac{1}{|\Lambda|} \sum_{\lambda \in \Lambda} \prod_{i \le k} (1 + \lambda x_i)

    If the mean of each gain is at most 0, :math:`E_k` has mean at most 1 for every k, so by
    Markov's inequality :math:`P(E_k \ge 1/\alpha) \le \alpha`: :math:`1/E_k` is a p-value. The
    bets :math:`\lambda` are fixed beforehand, so the order of the gains does not matter. The
    p-values of different k are dependent, and no maximum over k is taken.

    Parameters
    ----------
    gains : (n,) numbers :math:`x_i`
    worst : the smallest possible gain, a negative number known beforehand

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
    """Return the log evidence when the first rows have other gains than the remaining ones.

    Parameters
    ----------
    before, after : (n,) gains of each row before and after it is switched
    switched : (M,) numbers of rows, from the first on, that are switched
    worst : the smallest possible gain

    Examples
    --------
    >>> before, after = np.array([1.0, -1.0]), np.array([-1.0, 1.0])
    >>> evidence = switched_log_evidence(before, after, np.array([0, 1, 2]), -1.0)
    >>> evidence[0] == evidence[2], bool(evidence[1] < evidence[0])
    (np.True_, True)
    """

    def logs(bet: float) -> FloatArray:
        old, new = np.log1p(bet * before), np.log1p(bet * after)
        return np.asarray(old.sum() + np.append(0.0, np.cumsum(new - old))[switched])

    return mean_of_bets(logs(bet) for bet in bets_against(worst))


def log_evidence(gains: FloatArray, worst: float, counts: FloatArray | None = None) -> float:
    """Return `running_log_evidence` after the last gain.

    `counts` is the number of times each gain occurred; by default once.

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
    r"""Return an upper bound for a (weighted) mean that holds with probability 1 - delta.

    It is the smallest m for which the evidence that the gains :math:`w_i (m - x_i)` have a positive
    mean reaches 1 / delta.

    Parameters
    ----------
    values : (n,) numbers within [low, high]
    low, high : known range of the values
    delta : probability that the bound is too small
    weights : inverse inclusion probabilities
    largest_weight : the largest weight that any row can have, in this sample or another

    Examples
    --------
    >>> zeros = np.zeros(100)
    >>> round(mean_upper_bound(zeros, 0.0, 1.0, delta=0.05), 3)
    0.058
    """
    counts: FloatArray | None = None
    if weights is None:  # many rows may share a few distinct values
        values, times = np.unique(values, return_counts=True)
        counts = times.astype(np.float64)
    row_weights = np.ones(len(values)) if weights is None else weights

    def is_rejected(mean: float) -> bool:
        gains = row_weights * (mean - values)
        return log_evidence(gains, largest_weight * (mean - high), counts) >= -math.log(delta)

    below, above = low, high
    for _ in range(40):
        middle = (below + above) / 2
        below, above = (below, middle) if is_rejected(middle) else (middle, above)
    return above
