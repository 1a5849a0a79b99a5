"""model-diagnostics: the CORP decomposition of the Brier score and of the log loss."""

import numpy as np
import pytest
from model_diagnostics.scoring import LogLoss, SquaredError
from model_diagnostics.scoring import decompose as peer_decompose
from tests.parity.peer_rows import EVERY, drawn, one_problem

from calibrant.metrics import brier, decompose, nll

SCORES = {"brier": SquaredError(), "nll": LogLoss()}
NAMES = {
    "miscalibration": "calibration",
    "discrimination": "discrimination",
    "uncertainty": "uncertainty",
    "score": "score",
}


def both(labels, probs, score, weights=None):
    events, scores = one_problem(labels, probs)
    found = decompose(labels, probs, score=score, weights=weights)
    table = peer_decompose(
        events, scores.astype(np.float64), weights, scoring_function=SCORES[score]
    )
    return found, {ours: float(table[theirs][0]) for theirs, ours in NAMES.items()}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EVERY)
def test_every_part_of_the_brier_score_agrees(name, dtype):
    for n in (60, 1300):
        found, theirs = both(*drawn(name, n, n, dtype), "brier")
        for part, value in theirs.items():
            assert getattr(found, part) == pytest.approx(value, abs=1e-8), part


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["binary", "rare", "multiclass", "long_tailed"])
def test_every_part_of_the_log_loss_agrees(name, dtype):
    for n in (60, 1300):
        found, theirs = both(*drawn(name, n, n, dtype), "nll")
        assert np.isfinite(found.score)
        for part, value in theirs.items():
            assert getattr(found, part) == pytest.approx(value, abs=1e-8), part


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("name", ["binary", "tied", "multiclass"])
def test_every_finite_part_agrees_with_weights(name, score):
    labels, probs = drawn(name, 900, 2)
    weights = np.random.default_rng(2).uniform(0.2, 3.0, 900)
    found, theirs = both(labels, probs, score, weights)
    for part, value in theirs.items():
        assert getattr(found, part) == pytest.approx(value, abs=1e-8), part


@pytest.mark.parametrize("name", ["tied", "saturated"])
def test_a_certain_mistake_makes_score_and_miscalibration_infinite_on_both_sides(name):
    found, theirs = both(*drawn(name, 1300, 3), "nll")
    assert theirs["score"] == theirs["calibration"] == np.inf
    assert found.score == found.calibration == np.inf
    assert found.discrimination == pytest.approx(theirs["discrimination"], abs=1e-8)
    assert found.uncertainty == pytest.approx(theirs["uncertainty"], abs=1e-8)


@pytest.mark.parametrize("score", SCORES)
def test_the_parts_add_up_to_the_metric_of_the_same_name(score):
    labels, probs = drawn("binary", 1300, 4)
    _, theirs = both(labels, probs, score)
    metric = brier if score == "brier" else nll
    whole = theirs["calibration"] - theirs["discrimination"] + theirs["uncertainty"]
    assert metric(labels, probs) == pytest.approx(whole, abs=1e-8)
