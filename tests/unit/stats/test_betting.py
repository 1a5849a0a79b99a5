"""Betting evidence, and the bounds derived from it."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.stats import clopper_pearson, log_evidence, mean_upper_bound, running_log_evidence
from calibrant.stats.betting import BETS


def test_evidence_by_hand():
    # One gain of 1 and one of -1 when -1 is the worst: (1 + bet) (1 - bet) for each bet.
    expected = math.log(np.mean(1 - BETS**2))
    assert log_evidence(np.array([1.0, -1.0]), -1.0) == pytest.approx(expected)


def test_running_evidence_matches_the_evidence_of_each_prefix():
    gains = np.random.default_rng(0).uniform(-1, 1.2, 500)
    running = running_log_evidence(gains, -1.0)
    for k in (1, 10, 500):
        assert running[k - 1] == pytest.approx(log_evidence(gains[:k], -1.0))


def test_a_fair_game_rarely_looks_unfair():
    # A gain of 4 with probability 1/5, else -1; all outcomes of 40 rounds are enumerated.
    wins = np.arange(41)
    chance = binom.pmf(wins, 40, 0.2)
    result = np.array(
        [log_evidence(np.r_[np.full(w, 4.0), np.full(40 - w, -1.0)], -1) for w in wins]
    )
    assert chance @ np.exp(result) == pytest.approx(1)
    for level in (0.2, 0.05, 0.01):
        assert 0 < chance[result >= -math.log(level)].sum() <= level


def test_order_and_scale_do_not_matter():
    rng = np.random.default_rng(2)
    gains = rng.uniform(-1, 1, 100)
    base = log_evidence(gains, -1.0)
    assert log_evidence(rng.permutation(gains), -1.0) == pytest.approx(base)
    assert log_evidence(7 * gains, -7.0) == pytest.approx(base)


@pytest.mark.parametrize(("hits", "n"), [(0, 50), (3, 100), (40, 200), (900, 1000)])
def test_the_bound_of_a_share_is_close_to_the_exact_one(hits, n):
    values = np.r_[np.ones(hits), np.zeros(n - hits)]
    exact = clopper_pearson(hits, n, confidence=0.9).high
    bound = mean_upper_bound(values, 0.0, 1.0, delta=0.05)
    assert hits / n < bound
    assert exact - 1e-9 <= bound <= exact + 1.5 / math.sqrt(n)


def test_the_bound_holds_as_often_as_it_says():
    rng = np.random.default_rng(3)
    below = 0
    for _ in range(1000):
        values = rng.choice([0.0, 1.0, 5.0], 80, p=[0.7, 0.2, 0.1])  # mean 0.7
        below += mean_upper_bound(values, 0.0, 5.0, delta=0.1) < 0.7
    assert 0 < below <= 100 + 3.1 * math.sqrt(90)


def test_weights_shift_the_bound_to_the_weighted_mean():
    values = np.r_[np.zeros(500), np.ones(500)]
    weights = np.r_[np.full(500, 3.0), np.ones(500)]
    bound = mean_upper_bound(values, 0.0, 1.0, delta=0.05, weights=weights, largest_weight=3.0)
    assert 0.25 < bound < 0.32
