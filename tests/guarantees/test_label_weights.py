"""Rows sampled by their label: the test keeps its level, finds errors, and the floor is true.

Scores are right in the whole population; rows with and without the event are taken with different
chances and weighted by their inverse, as when all frauds and few other payments are labelled.
"""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.metrics import calibration_test, compare, ece, evaluate

DRAWS, ROWS = 120, 1500


def sampled(seed: int, rest: float, events: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, right scores and weights of rows taken with these chances."""
    rng = np.random.default_rng(seed)
    scores = 1 / (1 + np.exp(-rng.normal(-2, 1.5, 20_000)))
    labels = (rng.random(len(scores)) < scores).astype(np.int64)
    chance = np.where(labels == 1, events, rest)
    kept = np.flatnonzero(rng.random(len(scores)) < chance)[:ROWS]
    return labels[kept], scores[kept], 1 / chance[kept]


@pytest.mark.smoke
@pytest.mark.parametrize(("rest", "events"), [(1.0, 0.1), (0.1, 1.0)])
def test_false_alarms_are_rare_and_wrong_scores_are_found(rest, events):
    alarms, found = 0, 0
    for seed in range(DRAWS):
        labels, scores, weights = sampled(seed, rest, events)
        wrong = 1 / (1 + (1 - scores) / scores * np.exp(-0.8))  # log-odds too high by 0.8
        options = {"weights": weights, "draws": 299, "rng": seed}
        alarms += calibration_test(labels, scores, **options).p_value <= 0.05
        found += calibration_test(labels, wrong, **options).p_value <= 0.05
    assert alarms <= 0.12 * DRAWS  # 5 % are allowed; so many come by luck one time in 1,000
    assert found >= 0.9 * DRAWS


def test_the_floor_is_what_calibrated_models_get():
    drawn = [sampled(seed, 0.1, 1.0) for seed in range(60)]
    seen = [ece(y, s, scheme="mass", weights=w) for y, s, w in drawn]
    floors = [
        evaluate(y, s, weights=w, rng=seed)["ece_em"].floor
        for seed, (y, s, w) in enumerate(drawn[:5])
    ]
    assert np.mean(seen) == pytest.approx(np.mean([floor.mean for floor in floors]), rel=0.15)
    assert np.mean(np.array(seen) <= floors[0].q95) > 0.85


def test_differences_of_the_debiased_error_hold_the_truth():
    inside = 0
    for seed in range(40):
        labels, scores, weights = sampled(seed, 0.1, 1.0)
        found = compare(labels, scores, scores, weights=weights, rng=seed)["ece_debiased"]
        assert found.interval.low <= found.value <= found.interval.high
        inside += found.interval.low <= 0 <= found.interval.high
    assert inside == 40
