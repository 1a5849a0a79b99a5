"""Quadratic scaling: by hand, by search, and where the truth is a parabola."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize

from calibrant.calibrators import Calibrator, PlattScaling, QuadraticScaling
from calibrant.calibrators.fits.logistic import platt_targets
from calibrant.convert import log_odds_from_logits
from calibrant.metrics import nll
from calibrant.testing import WORLDS


def learned(calibrator, k=0):
    return tuple(calibrator.maps_[k][name] for name in ("bend", "slope", "intercept"))


def of_two_normals(n, seed, up=(1.0, 2.0), down=(-1.0, 1.0), share=0.3):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return np.where(y == 1, rng.normal(*up, n), rng.normal(*down, n)), y


def test_three_scores_by_hand():
    # Log-odds of 1/5, 1/2 and 1/5 at -1, 0 and 2 lie on a parabola that opens downwards.
    scores, rate = np.array([-1.0, 0.0, 2.0]), np.array([0.2, 0.5, 0.2])
    labels = np.concatenate([np.arange(10) < 10 * r for r in rate]).astype(int)
    calibrator = QuadraticScaling(shrink=None).fit(np.repeat(scores, 10), labels)
    expected = np.polyfit(scores, np.log(rate / (1 - rate)), 2)
    assert learned(calibrator) == pytest.approx(expected, abs=1e-8)
    assert expected == pytest.approx([-np.log(4) / 2, np.log(4) / 2, 0.0])
    assert calibrator.predict_proba(scores) == pytest.approx(rate, abs=1e-9)


def test_beyond_the_fitted_scores_a_line_goes_on_that_is_no_sharper_than_the_model():
    scores, rate = np.array([-1.0, 0.0, 2.0]), np.array([0.2, 0.5, 0.2])
    labels = np.concatenate([np.arange(10) < 10 * r for r in rate]).astype(int)
    calibrator = QuadraticScaling(shrink=None).fit(np.repeat(scores, 10), labels)
    # The parabola is log(4) / 2 (s - s^2): it has slope 2.1 at -1, and -2.1 at 2.
    odds = [-np.log(4) - 2, -np.log(4)]
    found = calibrator.predict_proba([-3.0, 7.0])
    assert found == pytest.approx(1 / (1 + np.exp(-np.array(odds))), rel=1e-7)
    far = calibrator.predict_log_proba([[0.0, 1e4], [1e4, 0.0]])
    assert np.isfinite(far).all()


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_no_search_from_many_starts_does_better(seed, smooth):
    z, y = of_two_normals(90, seed)
    targets = platt_targets(y == 1, None, smooth=smooth)

    def loss(theta):
        odds = theta[0] * z * z + theta[1] * z + theta[2]
        return float(np.mean(np.logaddexp(0.0, odds) - targets * odds))

    mine = loss(learned(QuadraticScaling(shrink="platt" if smooth else None).fit(z, y)))
    for start in ((0, 1, 0), (1, 0, 0), (-1, -1, 2), (0, 0, -3)):
        options = {"gtol": 1e-9, "maxiter": 5000}
        assert mine <= minimize(loss, start, method="BFGS", options=options).fun + 1e-12


def test_the_parabola_between_two_normals_is_recovered():
    (m1, s1), (m0, s0), share = (1.0, 2.0), (-1.0, 1.0), 0.3
    z, y = of_two_normals(200_000, 5, (m1, s1), (m0, s0), share)
    bend, slope, intercept = learned(QuadraticScaling(shrink="platt").fit(z, y))
    assert bend == pytest.approx(0.5 / s0**2 - 0.5 / s1**2, abs=0.02)
    assert slope == pytest.approx(m1 / s1**2 - m0 / s0**2, abs=0.02)
    constant = np.log(share / (1 - share) * s0 / s1) + 0.5 * (m0 / s0) ** 2 - 0.5 * (m1 / s1) ** 2
    assert intercept == pytest.approx(constant, abs=0.03)


def test_where_a_line_is_true_the_bend_vanishes():
    draw = WORLDS["binary"].draw(100_000, 6)
    z = np.log(draw.probs) - np.log1p(-draw.probs)
    bend, slope, _ = learned(QuadraticScaling(shrink="platt").fit(z, draw.labels))
    assert bend == pytest.approx(0.0, abs=0.005)
    assert slope == pytest.approx(1 / 1.6, abs=0.03)


def test_it_may_turn_round_where_labels_contradict_the_scores():
    z, y = of_two_normals(500, 7)
    found = QuadraticScaling(shrink="platt").fit(z, 1 - y)
    assert nll(1 - y, found.predict_proba(z)) < nll(1 - y, np.full(500, 1 - y.mean()))
    assert learned(found) == pytest.approx(
        -np.array(learned(QuadraticScaling(shrink="platt").fit(z, y)))
    )


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e4])
def test_the_scale_of_the_logits_changes_the_coefficients_and_nothing_else(scale):
    z, y = of_two_normals(300, 8)
    usual, odd = (
        QuadraticScaling(shrink="platt").fit(z, y),
        QuadraticScaling(shrink="platt").fit(scale * z, y),
    )
    assert odd.predict_proba(scale * z) == pytest.approx(usual.predict_proba(z), abs=1e-6)


def test_a_row_far_out_does_not_spoil_the_fit():
    z, y = of_two_normals(400, 9)
    far, event = np.append(z, 1e4), np.append(y, 1)
    loss = nll(event, QuadraticScaling(shrink=None).fit(far, event).predict_proba(far))
    line = nll(event, PlattScaling(shrink=None).fit(far, event).predict_proba(far))
    assert loss <= line + 1e-9


def test_separated_and_constant_scores_stay_sound():
    z, y = [-1e4] * 3 + [1e4] * 8, [0] * 3 + [1] * 8
    found = QuadraticScaling(shrink="platt").fit(z, y).predict_proba([-1e4, 1e4])
    assert found == pytest.approx([1 / 5, 9 / 10], abs=1e-9)
    sure = QuadraticScaling(shrink=None).fit(z, y)
    assert np.isfinite(learned(sure)).all()
    for at in (0.0, 2.0, -1e4):
        constant = QuadraticScaling(shrink=None).fit([at] * 8, [1] * 2 + [0] * 6)
        assert constant.predict_proba([at]) == pytest.approx([0.25], abs=1e-9)
        # Nothing decides how it goes on, so it goes on as the model does.
        assert constant.predict_proba([at + 1.0]) == pytest.approx([np.e / (np.e + 3)], abs=1e-6)


def test_weights_are_repetitions_and_order_is_nothing():
    z, y = of_two_normals(150, 10)
    times = np.random.default_rng(10).integers(1, 4, 150)
    once = learned(QuadraticScaling(shrink="platt").fit(z, y, times))
    many = learned(QuadraticScaling(shrink="platt").fit(np.repeat(z, times), np.repeat(y, times)))
    assert many == pytest.approx(once, abs=1e-8)
    order = np.random.default_rng(11).permutation(150)
    again = learned(QuadraticScaling(shrink="platt").fit(z[order], y[order], times[order]))
    assert again == pytest.approx(once, abs=1e-8)


def test_two_columns_and_more_classes():
    z, y = of_two_normals(200, 12)
    columns = np.column_stack([3 - z, np.full(200, 3.0)])
    one, two = (
        QuadraticScaling(shrink="platt").fit(z, y),
        QuadraticScaling(shrink="platt").fit(columns, y),
    )
    assert two.predict_proba(columns)[:, 1] == pytest.approx(one.predict_proba(z), abs=1e-9)
    draw = WORLDS["multiclass"].draw(500, 13)
    logits = np.log(draw.probs)
    odds = log_odds_from_logits(logits)
    found = QuadraticScaling(shrink="platt").fit(logits, draw.labels).predict_proba(logits)
    alone = np.column_stack(
        [
            QuadraticScaling(shrink="platt")
            .fit(odds[:, k], draw.labels == k)
            .predict_proba(odds[:, k])
            for k in range(5)
        ]
    )
    assert found == pytest.approx(alone / alone.sum(axis=1, keepdims=True), abs=1e-9)


@pytest.mark.parametrize("smooth", [True, False])
def test_saved_and_loaded_it_says_the_same_to_the_last_bit(smooth):
    z, y = of_two_normals(100, 14)
    calibrator = QuadraticScaling(shrink="platt" if smooth else None).fit(z, y)
    loaded = Calibrator.from_dict(json.loads(json.dumps(calibrator.to_dict(), allow_nan=False)))
    asked = np.r_[z, -50.0, 50.0]
    assert (loaded.predict_log_proba(asked) == calibrator.predict_log_proba(asked)).all()


def test_the_pull_towards_the_identity_by_hand():
    # One score s: with g = p - frequency, bend = -N g s^2 / 2, slope = 1 - N g s / 2 and
    # intercept = -N g / 2.
    s, g, n = 1.5, -0.02, 20.0
    bend, slope, intercept = -n * g * s * s / 2, 1 - n * g * s / 2, -n * g / 2
    p = 1 / (1 + np.exp(-(bend * s * s + slope * s + intercept)))
    calibrator = QuadraticScaling().fit([s, s], [1, 0], n * np.array([p - g, 1 - p + g]))
    assert learned(calibrator) == pytest.approx((bend, slope, intercept), abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_no_search_does_better_against_the_pull(seed):
    z, y = of_two_normals(70, seed)

    def objective(theta):
        odds = theta[0] * z * z + theta[1] * z + theta[2]
        away = np.array(theta) - [0.0, 1.0, 0.0]
        return float(np.mean(np.logaddexp(0.0, odds) - y * odds)) + away @ away / 70

    mine = objective(learned(QuadraticScaling().fit(z, y)))
    for start in ((0, 1, 0), (1, 0, 0), (-1, -1, 2)):
        assert mine <= minimize(objective, start, method="BFGS").fun + 1e-10


def test_with_the_pull_weights_are_repetitions_and_extremes_stay_sound():
    z, y = of_two_normals(60, 15)
    times = np.random.default_rng(15).integers(1, 4, 60)
    once = learned(QuadraticScaling().fit(z, y, times))
    many = learned(QuadraticScaling().fit(np.repeat(z, times), np.repeat(y, times)))
    assert many == pytest.approx(once, abs=1e-8)
    for scale in (1e-6, 1.0, 1e4):
        calibrator = QuadraticScaling().fit(scale * z, y)
        found = calibrator.predict_proba([[0.0, scale], [1e4, 0.0], [0.0, 1e4]])
        assert np.isfinite(found).all()
        assert found.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-12)
