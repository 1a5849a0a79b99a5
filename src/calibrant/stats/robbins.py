"""An interval of a proportion that holds at any time, however often one looks."""

from __future__ import annotations

import math

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.results import Interval

__all__ = ["PRIOR", "robbins", "share_log_evidence"]

PRIOR = 2.0, 0.5
"""Parameters a and b of the beta distribution that the evidence is mixed over.

With a = b = 1/2 every share costs about the same. These make shares above one half cheaper, where
promises of precision mostly lie, at the cost of small shares. They are fixed: an a or b that was
picked after a look would void the guarantee."""

_HALVINGS = 60


def share_log_evidence(hits: FloatArray, n: FloatArray, share: FloatArray) -> FloatArray:
    r"""Return the log of the evidence that a proportion is not `share`.

    .. math:: \log M(p) = \log \frac{B(a + s,\, b + f)}{B(a, b)} - s \log p - f \log(1 - p)

    with :math:`s` hits, :math:`f` misses and :math:`B` the beta function. If each new row is a hit
    with probability p, whatever came before, M(p) is a martingale that begins at 1. So by Ville's
    inequality the chance that it *ever* reaches :math:`1/\alpha` is at most :math:`\alpha`.

    Parameters
    ----------
    hits, n : so far
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
    mixed = betaln(a + hits, b + misses) - betaln(a, b)
    return np.asarray(mixed - xlogy(hits, share) - xlog1py(misses, -share))


def robbins(hits: float, n: float, *, confidence: float = 0.95) -> Interval:
    r"""Interval of a proportion that holds at all n at once: look after every row, if you like.

    .. math:: \{p : M(p) < 1/\alpha\}

    with the evidence :math:`M` of `share_log_evidence`. With probability 1 - alpha the true share
    lies within every one of the intervals after 1, 2, 3, ... rows. They begin with a row that was
    fixed beforehand: rows that are dropped again, like those older than a day, are another sample.
    It is not for a single look at an n that was fixed: there `clopper_pearson` is shorter, and
    needs about half as many rows to tell a share from a target.

    Parameters
    ----------
    hits, n : so far
    confidence : that all intervals hold

    Examples
    --------
    One row that is a hit rejects the p with 0.8 / p >= 20:

    >>> found = robbins(1, 1)
    >>> round(found.low, 6), found.high
    (0.04, 1.0)
    >>> found = robbins(384, 485)
    >>> round(found.low, 3), round(found.high, 3)
    (0.725, 0.85)

    References
    ----------
    Robbins (1970), Statistical methods related to the law of the iterated logarithm; Howard,
    Ramdas, McAuliffe & Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence
    sequences.
    """
    limit, centre = -math.log(1 - confidence), hits / n if n else 0.5
    low = 0.0 if hits == 0 else _end(hits, n, 0.0, centre, limit)
    high = 1.0 if hits == n else _end(hits, n, 1.0, centre, limit)
    return Interval(low, high, confidence, "at any time (Robbins)")


def _end(hits: float, n: float, outside: float, inside: float, limit: float) -> float:
    """Return where the evidence reaches its limit; it grows from the share seen to both ends."""
    counts = np.array(float(hits)), np.array(float(n))
    for _ in range(_HALVINGS):
        middle = (outside + inside) / 2
        if share_log_evidence(*counts, np.array(middle)) < limit:
            inside = middle
        else:
            outside = middle
    return outside
