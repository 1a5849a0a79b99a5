"""The choice among candidates: a fixed order, and one paired standard error."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.study.candidates.candidate import StudyCandidate, weighted_ensemble
from calibrant.study.choose import choose_among, paired_mean, preference


def test_a_standard_error_worked_out_by_hand():
    # Mean 2, deviations -1, 0, 1: variance of the mean is (1 + 0 + 1) / 2 / 3.
    assert paired_mean(np.array([1.0, 2.0, 3.0])) == pytest.approx((2.0, np.sqrt(1 / 3)))


def test_without_weights_it_is_the_usual_standard_error():
    values = np.random.default_rng(0).normal(size=50)
    assert paired_mean(values) == pytest.approx(
        (values.mean(), values.std(ddof=1) / np.sqrt(len(values)))
    )


def test_a_scale_of_the_weights_changes_nothing():
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=30), rng.random(30) + 0.1
    assert paired_mean(values, weights) == pytest.approx(paired_mean(values, 7 * weights))
    assert paired_mean(values, np.ones(30)) == pytest.approx(paired_mean(values))


def test_differences_are_paired():
    """A constant gap is certain, however much the rows differ among themselves."""
    rows = np.random.default_rng(0).exponential(5.0, 40)
    comparison = choose_among([rows + 0.001, rows], order=[0, 1])
    assert (comparison.best, comparison.chosen) == (1, 1)
    assert comparison.behind == pytest.approx((0.001, 0.0))
    assert comparison.errors == pytest.approx((0.0, 0.0), abs=1e-9)


def test_failed_candidates_are_passed_over():
    losses = np.array([0.5, 0.7, 0.6])
    comparison = choose_among([None, losses, losses], order=[0, 2, 1])
    assert comparison.chosen == 2
    assert comparison.behind[0] is None


def test_the_order_prefers_single_models_the_winner_and_cross_entropy():
    def one(loss, model, way="one"):
        return StudyCandidate(loss, 0, "0" * 16, way, model=model, raced=True)

    candidates = [
        one("ce", "linear"), one("adafocal", "boosting"), one("ce", "boosting"),
        one("ce", "boosting", "ensemble"),
    ]  # fmt: skip
    candidates.append(weighted_ensemble((candidates[0], candidates[2])))
    assert preference(candidates, ["boosting", "linear"]) == [2, 1, 0, 3, 4]
    assert candidates[4].name == "weighted ensemble of 2"
    assert candidates[2].name == "boosting, ce"
