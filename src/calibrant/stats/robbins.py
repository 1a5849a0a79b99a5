"""Confidence sequence for a proportion, valid at all sample sizes at once."""

from __future__ import annotations

import math

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.results import Interval

PRIOR = 2.0, 0.5
"""Parameters a and b of the beta mixture.

With a = b = 1/2 intervals are about equally tight for all shares. These values favour shares above
one half, where most precision targets are, at the expense of small shares. They are fixed: choosing
them after seeing data would void the guarantee."""

_HALVINGS = 60


def share_log_evidence(hits: FloatArray, n: FloatArray, share: FloatArray) -> FloatArray:
    r"""Return the log evidence that a proportion is not `share`.

    .. math:: \log M(p) = \log \frac{B(a + s,\, b + f)}{B(a, b)} - s \log p - f \log(1 - p)

    with :math:`s` hits, :math:`f` misses and :math:`B` the beta function. If each new row is a hit
    with probability p given the past, M(p) is a martingale that starts at 1. By Ville's inequality
    the probability that it *ever* reaches :math:`1/\alpha` is at most :math:`\alpha`.

    Parameters
    ----------
    hits, n : number of hits and rows so far
    share : p, strictly between 0 and 1

    Examples
    --------
    After one hit, M(p) = B(3, 1/2) / B(2, 1/2) / p = 0.8 / p:

    >>> float(np.exp(share_log_evidence(np.array(1.0), np.array(1.0), np.array(0.5)))).__round__(9)
    1.6
    """
    from scipy.special import betaln, xlog1py, xlogy

    a, b = PRIOR
    misses = n - hits
    mixture = betaln(a + hits, b + misses) - betaln(a, b)
    return np.asarray(mixture - xlogy(hits, share) - xlog1py(misses, -share))


def robbins(hits: float, n: float, *, confidence: float = 0.95) -> Interval:
    r"""Confidence sequence for a proportion: an interval that is valid at all n at once.

    .. math:: \{p : M(p) < 1/\alpha\}

    with the evidence :math:`M` of `share_log_evidence`. With probability 1 - alpha the true share
    lies within all intervals after 1, 2, 3, ... rows, so they may be checked after every row. The
    first row must be fixed beforehand: a sliding window, such as the last day, is not covered. It
    is not meant for a single check at a fixed n, where `clopper_pearson` is shorter and needs about
    half as many rows to distinguish a share from a target.

    Parameters
    ----------
    hits, n : number of hits and rows so far
    confidence : probability that all intervals contain the share

    Examples
    --------
    A single hit rejects every p with 0.8 / p >= 20:

    >>> interval = robbins(1, 1)
    >>> round(interval.low, 6), interval.high
    (0.04, 1.0)
    >>> interval = robbins(384, 485)
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.725, 0.85)

    References
    ----------
    Robbins (1970), Statistical methods related to the law of the iterated logarithm; Howard,
    Ramdas, McAuliffe & Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence
    sequences.
    """
    limit, centre = -math.log(1 - confidence), hits / n if n else 0.5
    low = 0.0 if hits == 0 else _find_bound(hits, n, 0.0, centre, limit)
    high = 1.0 if hits == n else _find_bound(hits, n, 1.0, centre, limit)
    return Interval(low, high, confidence, "at any time (Robbins)")


def _find_bound(hits: float, n: float, outside: float, inside: float, limit: float) -> float:
    """Find by bisection the share at which the evidence reaches its limit."""
    counts = np.array(float(hits)), np.array(float(n))
    for _ in range(_HALVINGS):
        middle = (outside + inside) / 2
        if share_log_evidence(*counts, np.array(middle)) < limit:
            inside = middle
        else:
            outside = middle
    return outside
