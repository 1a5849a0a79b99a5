"""Costs at thresholds that were fixed beforehand."""

import numpy as np
import pytest

from calibrant.stats import log_evidence
from calibrant.thresholds import Cost, select
from calibrant.thresholds.proof.candidates import FIXED_LOG_ODDS, Candidates, fixed_candidates
from calibrant.thresholds.proof.keeping import certify_cost
from calibrant.thresholds.proof.question import build_problem
from calibrant.thresholds.proof.ranked import rank_rows
from calibrant.thresholds.rates import RATES


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    event = rng.random(800) < 0.3
    return rank_rows(1 / (1 + np.exp(-rng.normal(3 * event - 2, 1))), event)


def test_costs_are_certified_by_the_evidence_of_each_row(rows):
    cost = Cost(1, 5, true_positive=0.5)
    positions = np.array([0, 100, 240, 500, 800])
    found = certify_cost(rows, Candidates(positions, positions / 800), cost <= 0.7, 0.05)
    for place, k in enumerate(positions):
        acted = np.arange(800) < k
        paid = np.select([acted & rows.event, acted, rows.event], [0.5, 1.0, 5.0], default=0.0)
        evidence = log_evidence(0.7 - paid, 0.7 - 5)
        assert found[place] == (evidence >= -np.log(0.05 / 5))
    assert found.any()
    assert not found.all()


def test_fixed_thresholds_know_nothing_of_the_rows_but_include_the_calibrated_rule(rows):
    cost = Cost(1, 5)
    one, other = (
        fixed_candidates(build_problem(y, s, None, [RATES["recall"]]), cost)
        for y, s in (([0, 1], [0.2, 0.8]), ([0, 1, 1], [0.9, 0.1, 0.3]))
    )
    assert np.array_equal(one.thresholds, other.thresholds)
    assert len(one.thresholds) == len(FIXED_LOG_ODDS) + 1
    assert cost.baseline in one.thresholds
    scores = np.array([0.2, 0.8])
    assert one.positions.tolist() == [(scores >= t).sum() for t in one.thresholds]


def test_the_limit_that_is_promised_holds_as_often_as_promised():
    # Scores are calibrated, so the expected cost of a threshold is known.
    rng = np.random.default_rng(5)
    cost = Cost(1, 3)
    grid = (np.arange(200_000) + 0.5) / 200_000  # probabilities are uniform
    broken = 0
    for _ in range(200):
        probs = rng.random(400)
        point = select(rng.random(400) < probs, probs, minimise=cost, confidence=0.8)
        truth = np.where(grid >= point.threshold, 1 * (1 - grid), 3 * grid).mean()
        broken += truth > point.hold[0].value
    assert broken <= 200 * 0.2 + 3.1 * (200 * 0.16) ** 0.5


def test_a_calibrated_model_is_hardly_better_off_than_by_the_calibrated_rule():
    rng = np.random.default_rng(6)
    probs = rng.random(20_000)
    point = select(rng.random(20_000) < probs, probs, minimise=Cost(1, 3))
    assert point.baseline["threshold"] == 0.25
    assert point["cost"].value <= point.baseline["cost"]
    assert point["cost"].value == pytest.approx(point.baseline["cost"], abs=0.01)
    assert point.threshold == pytest.approx(0.25, abs=0.08)
