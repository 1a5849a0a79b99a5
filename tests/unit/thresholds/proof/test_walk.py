"""The walk down the ranks: its plan, its tests, and what it certifies."""

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.thresholds.proof.walk import binomial_passes, fewest_rows, plan_starts, walk


def certified_by_definition(hits, target, delta):
    """Apply the rule one position at a time, with scipy's binomial tail."""
    n = len(hits)
    shares = dict(zip(*plan_starts(n, target, delta), strict=True))
    alive, found = 0.0, []
    for k in range(1, n + 1):
        alive += shares.get(k, 0.0)
        if alive > 0 and binom.sf(hits[k - 1] - 1, k, target) <= alive:
            found.append(k)
        else:
            alive = 0.0
    return found


def positions(runs):
    return [k for first, last in runs for k in range(first, last + 1)]


def test_nineteen_straight_hits_prove_85_percent_by_hand():
    # 0.85 ** 18 = 0.0536, 0.85 ** 19 = 0.0456
    assert fewest_rows(0.85, 0.05) == 19
    starts, shares = plan_starts(25, 0.85, 0.05)
    assert starts.tolist() == [19]
    assert shares.tolist() == [0.05]
    assert positions(walk(25, 0.85, 0.05, binomial_passes(np.arange(1, 26), 0.85))) == [
        *range(19, 26)
    ]


def test_one_miss_ends_a_walk_that_has_no_slack():
    hits = np.r_[np.arange(1, 20), 19, np.arange(20, 25)]  # the twentieth row is no hit
    # P(Bin(20, 0.85) >= 19) = 0.1756
    assert positions(walk(25, 0.85, 0.05, binomial_passes(hits, 0.85))) == [19]


@pytest.mark.parametrize("target", [0.02, 0.5, 0.85, 0.99])
@pytest.mark.parametrize("n", [1, 7, 19, 300, 5000])
def test_the_plan_spends_delta_and_no_more_and_stays_within_the_rows(n, target):
    starts, shares = plan_starts(n, target, 0.05)
    assert len(starts) == len(shares)
    if len(starts) == 0:
        assert n < fewest_rows(target, 0.05)
        return
    assert shares.sum() == pytest.approx(0.05)
    assert starts[-1] <= n
    assert (np.diff(starts) > 0).all()
    assert target ** starts[0] <= shares[0]


@pytest.mark.parametrize("target", [0.1, 0.6, 0.85, 0.97])
def test_the_walk_is_its_definition(target):
    rng = np.random.default_rng(3)
    some = 0
    for _ in range(60):
        n = int(rng.integers(5, 400))
        rate = np.clip(target + rng.normal(0.05, 0.1) + np.linspace(0.1, -0.3, n), 0, 1)
        hits = np.cumsum(rng.random(n) < rate)
        expected = certified_by_definition(hits, target, 0.1)
        assert positions(walk(n, target, 0.1, binomial_passes(hits, target))) == expected
        some += bool(expected)
    assert some > 10


@pytest.mark.parametrize("target", [0.05, 0.5, 0.85, 0.999])
@pytest.mark.parametrize("level", [0.2, 0.05, 1e-6])
def test_bounds_that_spare_the_exact_tail_decide_as_it_does(target, level):
    rng = np.random.default_rng(1)
    k = np.arange(1, 3001)
    for excess in (0.0, 0.02, 0.1):
        hits = np.cumsum(rng.random(3000) < min(1.0, target + excess))
        exact = binom.sf(hits - 1, k, target) <= level
        assert (binomial_passes(hits, target)(k, level) == exact).all()


def test_a_better_row_never_takes_a_certificate_away():
    rng = np.random.default_rng(5)
    for _ in range(50):
        labels = rng.random(200) < 0.9
        before = set(positions(walk(200, 0.8, 0.1, binomial_passes(np.cumsum(labels), 0.8))))
        labels[rng.choice(np.flatnonzero(~labels))] = True
        after = set(positions(walk(200, 0.8, 0.1, binomial_passes(np.cumsum(labels), 0.8))))
        assert before <= after


def test_a_walk_of_coin_flips_at_the_target_is_certified_as_rarely_as_promised():
    rng = np.random.default_rng(0)
    wrong = sum(
        bool(walk(1000, 0.85, 0.1, binomial_passes(np.cumsum(rng.random(1000) < 0.85), 0.85)))
        for _ in range(2000)
    )
    assert 0 < wrong <= 2000 * 0.1 + 3.1 * (2000 * 0.09) ** 0.5
