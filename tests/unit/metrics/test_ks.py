import numpy as np
import pytest

from calibrant.errors import InputError
from calibrant.metrics import calibration_test, ks
from calibrant.testing import WORLDS


def test_running_sums_by_hand():
    # Residuals in order of the score: -0.3, +0.6, +0.3, +0.1; running: -0.3, 0.3, 0.6, 0.7.
    assert ks([0, 1, 1, 1], [0.3, 0.4, 0.7, 0.9]) == pytest.approx(0.7 / 4)


def test_ties_enter_together_so_the_order_of_rows_cannot_matter():
    assert ks([1, 0], [0.5, 0.5]) == 0.0
    assert ks([0, 1], [0.5, 0.5]) == 0.0


def test_it_is_at_least_the_mean_gap_and_at_most_one():
    draw = WORLDS["saturated"].draw(500, 0)
    result = ks(draw.labels, draw.probs)
    assert abs(draw.labels.mean() - draw.probs.mean()) <= result + 1e-12
    assert result <= 1


def test_p_value_is_the_share_of_redraws_at_least_as_large():
    # Ten scores of 1/2 and k events: the statistic is |k - 5|/10, so the exact p-value is
    # the two-sided binomial one.
    from scipy.stats import binomtest

    result = calibration_test([1] * 9 + [0], [0.5] * 10, draws=20_000)
    assert result.p_value == pytest.approx(binomtest(9, 10, 0.5).pvalue, abs=0.003)


def test_same_seed_same_p_value():
    draw = WORLDS["binary"].draw(200, 0)
    assert (
        calibration_test(draw.labels, draw.probs, rng=3).p_value
        == calibration_test(draw.labels, draw.probs, rng=3).p_value
    )


def test_it_finds_a_wrong_temperature_and_spares_a_calibrated_model():
    bad, good = WORLDS["binary"].draw(3000, 0), WORLDS["calibrated"].draw(3000, 5)
    assert calibration_test(bad.labels, bad.probs).p_value < 0.01
    assert calibration_test(good.labels, good.probs).p_value > 0.01


def test_scores_of_exactly_zero_and_one_that_err_are_impossible_under_calibration():
    result = calibration_test([1, 0, 1], [0.0, 1.0, 1.0], draws=999)
    assert result.p_value == pytest.approx(1 / 1000)


def test_classwise_is_refused_with_a_remedy():
    with pytest.raises(InputError, match="'positive' or 'top-label' here, got 'classwise'"):
        ks([0, 1], [0.2, 0.7], target="classwise")


def test_weights_move_the_statistic():
    plain = ks([0, 1, 1], [0.2, 0.4, 0.9])
    heavy = ks([0, 1, 1], [0.2, 0.4, 0.9], weights=np.array([1.0, 5.0, 1.0]))
    assert heavy > plain
