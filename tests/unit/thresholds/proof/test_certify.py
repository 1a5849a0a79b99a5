"""Which positions keep a target."""

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.thresholds import RATES, fpr, npv, precision, recall, specificity
from calibrant.thresholds.proof.certify import certify_positions
from calibrant.thresholds.proof.ranked import RankedRows, rank_rows


def some_rows(n=400, seed=0, digits=None, weight=None):
    rng = np.random.default_rng(seed)
    event = rng.random(n) < 0.4
    score = rng.normal(event * 2.0, 1.0)
    return rank_rows(score if digits is None else np.round(score, digits), event, weight)


def test_recall_by_hand():
    # Of 30 positives all above the end: 0.9 ** 30 = 0.042. Of 28: 0.9 ** 28 = 0.052.
    event = np.r_[np.ones(30, bool), np.zeros(10, bool)]
    rows = RankedRows(np.arange(40.0, 0, -1), event)
    assert rows.ends[certify_positions(rows, recall >= 0.9, 0.05)].tolist() == [*range(30, 41)]
    rows = RankedRows(np.arange(38.0, 0, -1), event[2:])
    assert not certify_positions(rows, recall >= 0.9, 0.05).any()


@pytest.mark.parametrize("name", ["recall", "specificity", "fpr", "coverage", "abstention"])
@pytest.mark.parametrize("sense", [">=", "<="])
def test_shares_of_a_group_are_the_exact_binomial_test(name, sense):
    rows = some_rows()
    rate = RATES[name]
    target = rate >= 0.6 if sense == ">=" else rate <= 0.6
    group = {"positive": rows.event, "negative": ~rows.event}.get(
        rate.condition, np.ones(rows.n, bool)
    )
    acted = np.cumsum(group)[rows.ends - 1]
    count = acted if rate.event == "act" else group.sum() - acted
    above = binom.sf(count - 1, group.sum(), 0.6)
    below = binom.cdf(count, group.sum(), 0.6)
    expected = (above if sense == ">=" else below) <= 0.05
    assert np.array_equal(certify_positions(rows, target, 0.05), expected)
    assert expected.any()


def test_npv_is_precision_of_the_reversed_rows():
    rows = some_rows()
    turned = RankedRows(-rows.score[::-1], ~rows.event[::-1])
    forward = rows.ends[certify_positions(rows, npv >= 0.8, 0.1)]
    backward = turned.ends[certify_positions(turned, precision >= 0.8, 0.1)]
    assert len(forward) > 10
    assert sorted(rows.n - backward) == forward.tolist()


def test_specificity_is_one_minus_the_false_positive_rate():
    rows = some_rows()
    assert np.array_equal(
        certify_positions(rows, specificity >= 0.8, 0.05), certify_positions(rows, fpr <= 0.2, 0.05)
    )


def test_ties_are_certified_only_where_they_end():
    rows = some_rows(digits=1)
    found = rows.ends[certify_positions(rows, precision >= 0.7, 0.1)]
    assert len(found) > 3
    assert all(k == rows.n or rows.score[k - 1] > rows.score[k] for k in found)


@pytest.mark.parametrize("target", [precision >= 0.7, recall >= 0.8, npv >= 0.7, fpr <= 0.3])
def test_weights_that_are_all_alike_certify_less_but_much_the_same(target):
    rows = some_rows(2000)
    heavy = RankedRows(rows.score, rows.event, np.full(rows.n, 3.0), 3.0)
    exact, bets = certify_positions(rows, target, 0.05), certify_positions(heavy, target, 0.05)
    assert bets.sum() <= exact.sum()
    assert bets.sum() > 0.5 * exact.sum()


@pytest.mark.parametrize("target", [precision >= 0.7, recall >= 0.8, npv >= 0.7, fpr <= 0.3])
def test_the_scale_of_weights_plays_no_part(target):
    weight = np.random.default_rng(1).uniform(1, 4, 1000)
    one, other = some_rows(1000, weight=weight), some_rows(1000, weight=8 * weight)
    assert np.array_equal(
        certify_positions(one, target, 0.1), certify_positions(other, target, 0.1)
    )


def test_weighted_bets_by_hand():
    # Two rows, weights 1 and 2, recall >= 0.5 when the second is passed over: gains 0.5 and -1.
    rows = RankedRows(np.array([2.0, 1.0]), np.array([True, True]), np.array([1.0, 2.0]), 2.0)
    bets = 0.9 * 0.5 ** np.arange(12) / (0.5 * 2)
    evidence = np.mean((1 + bets * 0.5) * (1 - bets))
    for delta, first in ((1 / evidence - 1e-9, False), (1 / evidence + 1e-9, True)):
        assert certify_positions(rows, recall >= 0.5, delta)[0] == first
