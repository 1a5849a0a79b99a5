"""Robbins confidence sequence: by hand, against numerical inversion, and its limits."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import beta

from calibrant.stats import clopper_pearson, robbins, share_log_evidence


def test_one_and_two_rows_by_hand():
    # B(3, 1/2) / B(2, 1/2) = (16/15) / (4/3) = 0.8: one hit rejects p where 0.8 / p >= 20.
    one = robbins(1, 1)
    assert (one.low, one.high) == (pytest.approx(0.8 / 20), 1.0)
    # B(4, 1/2) / B(2, 1/2) = (32/35) / (4/3) = 24/35: two hits where 24/35 / p^2 >= 20.
    assert robbins(2, 2).low == pytest.approx(math.sqrt(24 / 35 / 20))
    # B(2, 3/2) / B(2, 1/2) = 1/5: a miss rejects p where 0.2 / (1 - p) >= 20.
    miss = robbins(0, 1)
    assert (miss.low, miss.high) == (0.0, pytest.approx(1 - 0.2 / 20))
    assert (robbins(0, 0).low, robbins(0, 0).high) == (0.0, 1.0)


@pytest.mark.parametrize(("hits", "n"), [(1, 3), (8, 10), (10, 10), (0, 6), (384, 485)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_it_matches_a_numerical_inversion(hits, n, confidence):
    """The mixture is integrated and its roots are found numerically."""

    def log_of(q, p):
        return hits * math.log(q / p) + (n - hits) * math.log((1 - q) / (1 - p))

    def evidence(p):
        seen = min(max(hits / n, 1e-9), 1 - 1e-9)
        most = log_of(seen, p)

        def part(q):  # the end at 1 has an infinite density
            return beta.pdf(q, 2, 0.5) * math.exp(log_of(q, p) - most)

        edges = [0.0, *sorted({0.5 * seen, seen, 0.5 + 0.5 * seen, 1 - 1e-6}), 1 - 1e-12]
        parts = [quad(part, a, b, limit=500)[0] for a, b in pairwise(edges)]
        return math.log(sum(parts)) + most + math.log(1 - confidence)

    result, centre = robbins(hits, n, confidence=confidence), hits / n
    if hits:
        low = brentq(evidence, 1e-12, min(centre, 1 - 1e-9))
        assert result.low == pytest.approx(low, abs=1e-5)
    if hits < n:
        high = brentq(evidence, max(centre, 1e-9), 1 - 1e-12)
        assert result.high == pytest.approx(high, abs=1e-5)


def test_it_is_wider_than_the_exact_interval_at_a_fixed_n():
    for hits, n in ((9, 10), (86, 100), (900, 1000), (5, 50)):
        once, always = clopper_pearson(hits, n), robbins(hits, n)
        assert always.low < once.low < hits / n < once.high < always.high


def test_at_its_bounds_the_evidence_reaches_the_limit():
    for hits, n in ((3, 7), (86, 100), (4_000, 5_000)):
        span = robbins(hits, n, confidence=0.9)
        ends = np.array([span.low, span.high])
        result = share_log_evidence(np.array(float(hits)), np.array(float(n)), ends)
        assert result == pytest.approx([math.log(10)] * 2, abs=1e-6)


def test_the_evidence_is_a_martingale():
    """Its mean after one more row equals its current value."""
    n, share = np.arange(30.0), 0.85
    for hits in (0.0, 5.0, 20.0):
        at = n[n >= hits]
        now = np.exp(share_log_evidence(hits, at, share))
        hit = np.exp(share_log_evidence(hits + 1, at + 1, share))
        miss = np.exp(share_log_evidence(hits, at + 1, share))
        assert share * hit + (1 - share) * miss == pytest.approx(now)


def test_many_rows_leave_a_short_interval():
    span = robbins(900_000, 1_000_000)
    assert 0.89 < span.low < 0.9 < span.high < 0.91
    assert span.confidence == 0.95
