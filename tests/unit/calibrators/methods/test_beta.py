"""Beta calibration: by hand, by search within its bounds, and where the truth is known."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import betaln
from tests.sentences import refuses

from calibrant.calibrators import BetaCalibration, Calibrator, PlattScaling
from calibrant.calibrators.fits.logistic import platt_targets
from calibrant.calibrators.methods.platt import MIN_SLOPE
from calibrant.convert import log_odds_from_logits
from calibrant.errors import InputError
from calibrant.metrics import auroc
from calibrant.testing import WORLDS

SHAPES = ("abm", "am", "ab")


def logit(p):
    return np.log(p) - np.log1p(-np.asarray(p))


def learned(calibrator, k=0):
    return tuple(calibrator.maps_[k][name] for name in "abc")


def loss(abc, p, targets):
    """NLL written as plainly as the formula."""
    a, b, c = abc
    odds = a * np.log(p) - b * np.log(1 - p) + c
    return float(np.mean(np.logaddexp(0.0, odds) - targets * odds))


def searched(p, targets):
    """Return the best of several bounded searches without derivatives by hand."""
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000, "maxfun": 50_000}
    bounds = [(MIN_SLOPE, None), (MIN_SLOPE, None), (None, None)]
    starts = [(1, 1, 0), (0.1, 3, 1), (3, 0.1, -1), (MIN_SLOPE, MIN_SLOPE, 0), (5, 5, 0)]
    return min(
        (
            minimize(loss, s, (p, targets), method="L-BFGS-B", bounds=bounds, options=options)
            for s in starts
        ),
        key=lambda found: found.fun,
    )


def of_two_betas(n, seed, up=(3.0, 1.5), down=(1.2, 4.0), share=0.4):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    p = np.where(y == 1, rng.beta(*up, n), rng.beta(*down, n))
    return np.clip(p, 1e-12, 1 - 1e-12), y


def test_three_scores_by_hand():
    # Three scores, three frequencies, three coefficients: the curve goes through all points.
    p, rate = np.array([0.2, 0.5, 0.8]), np.array([0.1, 0.4, 0.8])
    labels = np.concatenate([np.arange(10) < 10 * r for r in rate]).astype(int)
    calibrator = BetaCalibration(shrink=None).fit(np.repeat(logit(p), 10), labels)
    expected = np.linalg.solve(
        np.column_stack([np.log(p), -np.log(1 - p), np.ones(3)]), logit(rate)
    )
    assert learned(calibrator) == pytest.approx(expected, abs=1e-7)
    assert calibrator.predict_proba(logit(p)) == pytest.approx(rate, abs=1e-8)


def test_with_one_slope_it_is_platt_scaling():
    p, y = of_two_betas(300, 0)
    for smooth in (True, False):
        one = BetaCalibration("am", shrink="platt" if smooth else None).fit(logit(p), y)
        line = PlattScaling(shrink="platt" if smooth else None).fit(logit(p), y).maps_[0]
        a, b, c = learned(one)
        assert a == b
        assert (a, c) == pytest.approx((line["slope"], line["intercept"]), rel=1e-9)


def test_with_two_slopes_alone_one_half_stays_one_half():
    p, y = of_two_betas(300, 1)
    calibrator = BetaCalibration("ab", shrink="platt").fit(logit(p), y)
    assert calibrator.predict_proba([0.0]) == pytest.approx([0.5], abs=1e-12)
    # By hand: frequencies 1/4 at 0.2 and 3/4 at 0.9 give a and b, one equation each in log 2.
    x = np.array([[np.log(0.4), -np.log(1.6)], [np.log(1.8), -np.log(0.2)]])
    a, b = np.linalg.solve(x, [-np.log(3), np.log(3)])
    hand = BetaCalibration("ab", shrink=None)
    hand.fit(np.repeat(logit(np.array([0.2, 0.9])), 4), [1, 0, 0, 0, 1, 1, 1, 0])
    assert min(a, b) > 0
    assert learned(hand) == pytest.approx((a, b, (a - b) * np.log(2)), abs=1e-7)


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_no_bounded_search_does_better(seed, smooth):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, 80)
    odds = [2.0, 0.5, -1.0, 0.2, 1.0][seed] * logit(p) + [0, 1, 0, 2, -2][seed] * logit(p) ** 2
    y = (rng.random(80) < 1 / (1 + np.exp(-odds))).astype(int)
    targets = platt_targets(y == 1, None, smooth=smooth)
    found = learned(BetaCalibration(shrink="platt" if smooth else None).fit(logit(p), y))
    assert min(found[:2]) >= MIN_SLOPE
    assert loss(found, p, targets) <= searched(p, targets).fun * (1 + 1e-9)


def test_at_a_bound_both_edges_and_the_corner_are_worse():
    rng = np.random.default_rng(2)
    p = rng.uniform(0.05, 0.95, 400)
    y = (rng.random(400) < np.where(p < 0.5, p, 1.0 - p)).astype(int)  # falls above one half
    found = learned(BetaCalibration(shrink=None).fit(logit(p), y))
    assert found[1] == MIN_SLOPE < found[0]
    mine = loss(found, p, y)
    for a in np.r_[MIN_SLOPE, np.linspace(0.02, 2, 25)]:
        for b in (MIN_SLOPE, 0.01, 0.1, 0.5):
            for c in np.linspace(-2, 3, 51):
                assert loss((a, b, c), p, y) >= mine - 1e-12


def test_the_ratio_of_two_beta_densities_is_recovered():
    up, down, share = (3.0, 1.5), (1.2, 4.0), 0.4
    p, y = of_two_betas(200_000, 3, up, down, share)
    a, b, c = learned(BetaCalibration(shrink="platt").fit(logit(p), y))
    # Standard errors are 0.04, 0.05 and 0.07.
    assert a == pytest.approx(up[0] - down[0], abs=0.13)
    assert b == pytest.approx(down[1] - up[1], abs=0.16)
    truth = betaln(*down) - betaln(*up) + np.log(share / (1 - share))
    assert c == pytest.approx(truth, abs=0.2)


def test_a_calibrated_model_keeps_its_map():
    draw = WORLDS["calibrated"].draw(200_000, 4)
    p = np.clip(draw.probs, 1e-9, 1 - 1e-9)
    found = BetaCalibration(shrink="platt").fit(logit(p), draw.labels).predict_proba(logit(p))
    assert np.abs(found - p).max() < 0.02


@pytest.mark.parametrize("shape", SHAPES)
def test_labels_that_contradict_the_scores_leave_the_order_alone(shape):
    p, y = of_two_betas(300, 5)
    calibrator = BetaCalibration(shape, shrink="platt").fit(logit(p), 1 - y)
    a, b, _ = learned(calibrator)
    assert a == b == MIN_SLOPE
    assert auroc(y, calibrator.predict_proba(logit(p))) == auroc(y, p)


@pytest.mark.parametrize("shape", SHAPES)
def test_separated_labels_and_extreme_logits_stay_sound(shape):
    z, y = [-1e4] * 3 + [1e4] * 8, [0] * 3 + [1] * 8
    found = BetaCalibration(shape, shrink="platt").fit(z, y).predict_proba([-1e4, 1e4])
    assert found == pytest.approx([1 / 5, 9 / 10], abs=1e-9)
    sure = BetaCalibration(shape, shrink=None).fit(z, y)
    assert np.isfinite(learned(sure)).all()
    assert sure.predict_proba([-1e4, 1e4]) == pytest.approx([0.0, 1.0], abs=1e-9)


@pytest.mark.parametrize("at", [0.0, 2.0, -1e4])
def test_one_distinct_score_gets_the_frequency(at):
    calibrator = BetaCalibration(shrink=None).fit([at] * 8, [1] * 2 + [0] * 6)
    assert calibrator.predict_proba([at]) == pytest.approx([0.25], abs=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1e-3])
def test_scores_near_one_half_are_fitted_like_a_line(scale):
    rng = np.random.default_rng(6)
    z = rng.normal(size=400)
    y = (rng.random(400) < 1 / (1 + np.exp(-2 * z))).astype(int)
    curve = BetaCalibration(shrink="platt").fit(scale * z, y).predict_proba(scale * z)
    line = PlattScaling(shrink="platt").fit(scale * z, y).predict_proba(scale * z)
    assert np.abs(curve - line).max() < 0.01


@pytest.mark.parametrize("shape", SHAPES)
def test_weights_are_repetitions_and_order_is_nothing(shape):
    p, y = of_two_betas(150, 7)
    times = np.random.default_rng(7).integers(1, 4, 150)
    once = BetaCalibration(shape, shrink="platt").fit(logit(p), y, times)
    many = BetaCalibration(shape, shrink="platt").fit(
        np.repeat(logit(p), times), np.repeat(y, times)
    )
    assert learned(many) == pytest.approx(learned(once), rel=1e-6)
    order = np.random.default_rng(8).permutation(150)
    again = BetaCalibration(shape, shrink="platt").fit(logit(p)[order], y[order], times[order])
    assert learned(again) == pytest.approx(learned(once), rel=1e-6)


def test_swapping_the_classes_swaps_the_slopes():
    p, y = of_two_betas(300, 9)
    a, b, c = learned(BetaCalibration(shrink="platt").fit(logit(p), y))
    mirrored = learned(BetaCalibration(shrink="platt").fit(-logit(p), 1 - y))
    assert mirrored == pytest.approx((b, a, -c), rel=1e-6)


def test_two_columns_and_more_classes():
    p, y = of_two_betas(200, 10)
    columns = np.log(np.column_stack([1 - p, p]))
    one, two = (
        BetaCalibration(shrink="platt").fit(logit(p), y),
        BetaCalibration(shrink="platt").fit(columns, y),
    )
    assert two.predict_proba(columns)[:, 1] == pytest.approx(one.predict_proba(logit(p)), abs=1e-9)
    draw = WORLDS["long_tailed"].draw(800, 11)
    logits = np.log(draw.probs)
    calibrator = BetaCalibration(shrink="platt").fit(logits, draw.labels)
    odds = log_odds_from_logits(logits)
    alone = np.column_stack(
        [
            BetaCalibration(shrink="platt")
            .fit(odds[:, k], draw.labels == k)
            .predict_proba(odds[:, k])
            for k in range(20)
        ]
    )
    expected = alone / alone.sum(axis=1, keepdims=True)
    assert calibrator.predict_proba(logits) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_saved_and_loaded_it_says_the_same_to_the_last_bit(shape):
    p, y = of_two_betas(100, 12)
    calibrator = BetaCalibration(shape, shrink="platt").fit(logit(p), y)
    loaded = Calibrator.from_dict(json.loads(json.dumps(calibrator.to_dict(), allow_nan=False)))
    assert loaded.parameters == shape
    assert (loaded.predict_log_proba(logit(p)) == calibrator.predict_log_proba(logit(p))).all()


def test_another_shape_is_refused():
    with refuses(InputError, "'abm'", "'am'", "'ab'"):
        BetaCalibration("abc", shrink="platt").fit([0.0, 1.0], [0, 1])


def test_the_pull_towards_the_identity_by_hand():
    # One score: with g = p' - frequency, a = 1 - N g log(p) / 2, b = 1 + N g log(1 - p) / 2 and
    # c = -N g / 2.
    p, g, n = 0.8, -0.02, 20.0
    a, b, c = 1 - n * g * np.log(p) / 2, 1 + n * g * np.log(1 - p) / 2, -n * g / 2
    new = 1 / (1 + np.exp(-(a * np.log(p) - b * np.log(1 - p) + c)))
    weights = n * np.array([new - g, 1 - new + g])
    calibrator = BetaCalibration().fit([logit(p)] * 2, [1, 0], weights)
    assert learned(calibrator) == pytest.approx((a, b, c), abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_no_bounded_search_does_better_against_the_pull(seed):
    p, y = of_two_betas(70, seed)
    p = np.clip(p, 0.01, 0.99)

    def objective(abc):
        away = np.array(abc) - [1.0, 1.0, 0.0]
        return loss(abc, p, y) + away @ away / 70

    bounds = [(MIN_SLOPE, None), (MIN_SLOPE, None), (None, None)]
    mine = objective(learned(BetaCalibration().fit(logit(p), y)))
    for start in ((1, 1, 0), (0.1, 3, 1), (3, 0.1, -1)):
        other = minimize(objective, start, bounds=bounds, options={"ftol": 1e-14})
        assert mine <= other.fun + 1e-10


@pytest.mark.parametrize("shape", SHAPES)
def test_with_the_pull_weights_are_repetitions_and_separated_labels_stay_near(shape):
    p, y = of_two_betas(60, 13)
    times = np.random.default_rng(13).integers(1, 4, 60)
    once = learned(BetaCalibration(shape).fit(logit(p), y, times))
    many = learned(BetaCalibration(shape).fit(np.repeat(logit(p), times), np.repeat(y, times)))
    assert many == pytest.approx(once, rel=1e-6, abs=1e-9)
    a, b, _ = learned(BetaCalibration(shape).fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1]))
    assert 1.0 < min(a, b) <= max(a, b) < 3.0
    fallen = BetaCalibration(shape).fit(logit(p), 1 - y)
    assert auroc(y, fallen.predict_proba(logit(p))) == auroc(y, p)
