import math

import numpy as np
import pytest

from calibrant.errors import InputError
from calibrant.metrics import brier, decompose, ece_debiased, nll, spiegelhalter
from calibrant.testing import WORLDS, shifted_world


def test_log_loss_by_hand():
    assert nll([0, 1], [0.5, 0.8]) == pytest.approx(-(math.log(0.5) + math.log(0.8)) / 2)
    assert nll([2], [[0.2, 0.3, 0.5]]) == pytest.approx(-math.log(0.5))


def test_a_zero_for_what_happened_is_infinite_not_clipped():
    assert nll([1, 0], [0.0, 0.5]) == math.inf


def test_brier_of_two_classes_is_that_of_the_positive_class():
    assert brier([0, 1], [0.5, 0.8]) == pytest.approx((0.25 + 0.04) / 2)
    assert brier([0, 1], [[0.5, 0.5], [0.2, 0.8]]) == pytest.approx((0.25 + 0.04) / 2)


@pytest.mark.parametrize("score", [nll, brier])
def test_the_true_posterior_is_the_best_forecast(score):
    draw = WORLDS["multiclass"].draw(50_000, 0)
    assert score(draw.labels, draw.posterior) < score(draw.labels, draw.probs)


@pytest.mark.parametrize("name", ["brier", "nll"])
def test_the_parts_of_a_decomposition_add_up_and_none_is_negative(name):
    draw = WORLDS["binary"].draw(2000, 0)
    result = decompose(draw.labels, draw.probs, score=name)
    assert result.score == pytest.approx(result.calibration + result.refinement)
    assert result.refinement == pytest.approx(result.uncertainty - result.discrimination)
    assert min(result.calibration, result.discrimination, result.refinement) >= 0
    expected = brier(draw.labels, draw.probs) if name == "brier" else nll(draw.labels, draw.probs)
    assert result.score == pytest.approx(expected)


def test_a_constant_forecast_at_the_base_rate_is_calibrated_and_does_not_discriminate():
    result = decompose([1, 0, 0, 0], np.full(4, 0.25))
    assert result.calibration == pytest.approx(0)
    assert result.discrimination == pytest.approx(0)


def test_recalibrating_removes_calibration_and_keeps_refinement():
    draw = WORLDS["binary"].draw(20_000, 0)
    raw = decompose(draw.labels, draw.probs)
    true = decompose(draw.labels, draw.posterior)
    assert true.calibration < raw.calibration / 3
    assert true.refinement == pytest.approx(raw.refinement, rel=1e-6)  # same order, same fit


def test_a_decomposition_of_more_classes_is_that_of_the_top_label():
    draw = WORLDS["multiclass"].draw(500, 0)
    right = (draw.probs.argmax(axis=1) == draw.labels).astype(int)
    assert decompose(draw.labels, draw.probs) == decompose(right, draw.probs.max(axis=1))
    assert decompose(draw.labels, draw.probs) == decompose(
        draw.labels, draw.probs, target="top-label"
    )


def test_a_decomposition_refuses_what_it_cannot_split():
    with pytest.raises(InputError, match="score must be 'brier' or 'nll', got 'logloss'"):
        decompose([0, 1], [0.2, 0.7], score="logloss")
    with pytest.raises(InputError, match="class-wise"):
        decompose([0, 1], [0.2, 0.7], target="classwise")


def test_debiasing_takes_off_what_chance_adds():
    draws = [WORLDS["calibrated"].draw(2000, s) for s in range(40)]
    assert np.mean([ece_debiased(d.labels, d.probs) for d in draws]) < 0.02
    known = [shifted_world(0.08).draw(5000, s) for s in range(20)]
    result = np.mean([ece_debiased(d.labels, d.probs) ** 2 for d in known])
    # Of 15 equal-mass bins the middle one straddles 1/2 and errs by nothing.
    assert math.sqrt(result) == pytest.approx(0.08 * math.sqrt(14 / 15), abs=0.004)


def test_spiegelhalter_by_hand():
    result = spiegelhalter([0, 1, 1, 1], [0.3, 0.4, 0.7, 0.9])
    assert result.statistic == pytest.approx(-0.2 / math.sqrt(0.1344))
    vector = spiegelhalter([0, 1], [[0.6, 0.4], [0.3, 0.7]], target="vector")
    binary = spiegelhalter([0, 1], [0.4, 0.7])
    assert vector.statistic == pytest.approx(binary.statistic)


def test_spiegelhalter_has_no_class_wise_form():
    with pytest.raises(InputError, match="'positive' or 'top-label'"):
        spiegelhalter([0, 1], [0.2, 0.7], target="classwise")


def test_spiegelhalter_is_undefined_where_nothing_can_vary():
    result = spiegelhalter([0, 1], [0.0, 1.0])
    assert result.statistic is None
    assert "undefined" in result.why


def test_spiegelhalter_has_the_stated_size_and_is_blind_to_errors_that_cancel():
    rejected = [
        spiegelhalter(d.labels, d.probs).p_value < 0.05
        for d in (WORLDS["calibrated_multiclass"].draw(500, s) for s in range(400))
    ]
    assert 0.02 < np.mean(rejected) < 0.09
    rng = np.random.default_rng(0)
    scores = np.repeat([0.4, 0.6], 5000)
    events = rng.random(10_000) < scores + np.tile([0.15, -0.15], 5000)
    assert abs(spiegelhalter(events, scores).statistic) < 3
