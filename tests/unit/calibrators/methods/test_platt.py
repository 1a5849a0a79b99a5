"""Platt scaling: by hand, by search on a grid, and where the truth is known."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.sentences import refuses

from calibrant.calibrators import Calibrator, PlattScaling, TemperatureScaling
from calibrant.calibrators.fits.logistic import platt_targets
from calibrant.calibrators.methods.platt import MIN_SLOPE
from calibrant.convert import log_odds_from_logits
from calibrant.errors import InputError
from calibrant.metrics import auroc, nll
from calibrant.testing import WORLDS


def sigmoid(z):
    return 1 / (1 + np.exp(-np.asarray(z)))


def line(calibrator, k=0):
    return calibrator.maps_[k]["slope"], calibrator.maps_[k]["intercept"]


def drawn(n, seed, slope=0.6, intercept=-0.4, spread=3.0):
    rng = np.random.default_rng(seed)
    z = spread * rng.normal(size=n)
    return z, (rng.random(n) < sigmoid(slope * z + intercept)).astype(int)


def test_by_hand_with_platts_targets():
    # N+ = N- = 4, targets 5/6 and 1/6: the groups' means are 1/3 and 2/3, log-odds -log 2, log 2.
    logits = [-1.0] * 4 + [1.0] * 4
    calibrator = PlattScaling(shrink="platt").fit(logits, [1, 0, 0, 0, 1, 1, 1, 0])
    assert line(calibrator) == pytest.approx((np.log(2), 0.0), abs=1e-9)
    assert calibrator.predict_proba([-1.0, 0.0, 1.0]) == pytest.approx([1 / 3, 1 / 2, 2 / 3])


def test_by_hand_without():
    logits = [-2.0] * 5 + [2.0] * 5
    calibrator = PlattScaling(shrink=None).fit(logits, [1, 0, 0, 0, 0, 1, 1, 1, 1, 0])
    assert line(calibrator) == pytest.approx((np.log(4) / 2, 0.0), abs=1e-9)
    assert calibrator.predict_proba([4.0]) == pytest.approx([16 / 17])


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_no_simplex_search_does_better(seed, smooth):
    z, y = drawn(80, seed)
    targets = platt_targets(y == 1, None, smooth=smooth)

    def loss(theta):
        p = sigmoid(theta[0] * z + theta[1])
        return -np.mean(targets * np.log(p) + (1 - targets) * np.log(1 - p))

    found = line(PlattScaling(shrink="platt" if smooth else None).fit(z, y))
    options = {"xatol": 1e-12, "fatol": 1e-15, "maxiter": 4000}
    for start in ((1.0, 0.0), (0.1, 1.0), (2.0, -1.0)):
        best = minimize(loss, start, method="Nelder-Mead", options=options)
        assert loss(found) <= best.fun + 1e-12
        assert found == pytest.approx(best.x, abs=1e-5)


def test_the_line_is_recovered():
    z, y = drawn(200_000, 0)
    slope, intercept = line(PlattScaling(shrink="platt").fit(z, y))
    assert slope == pytest.approx(0.6, abs=0.01)
    assert intercept == pytest.approx(-0.4, abs=0.02)


def test_on_an_over_confident_world_it_reaches_the_truth():
    draw = WORLDS["binary"].draw(100_000, 1)
    z = np.log(draw.probs) - np.log1p(-draw.probs)
    slope, intercept = line(PlattScaling(shrink="platt").fit(z, draw.labels))
    assert slope == pytest.approx(1 / 1.6, abs=0.01)
    assert intercept == pytest.approx(0.0, abs=0.05)


def test_the_slope_stays_positive_where_labels_contradict_the_scores():
    z, y = drawn(300, 2, slope=-1.0)
    calibrator = PlattScaling(shrink=None).fit(z, y)
    slope, intercept = line(calibrator)
    assert slope == MIN_SLOPE
    assert calibrator.predict_proba(z) == pytest.approx(np.full(300, y.mean()), abs=1e-5)
    assert auroc(y, calibrator.predict_proba(z)) == auroc(y, sigmoid(z))
    # Nothing on a grid of allowed lines does better.
    mine = nll(y, calibrator.predict_proba(z))
    for a in (MIN_SLOPE, 1e-4, 1e-2, 0.1, 1.0):
        for b in np.linspace(intercept - 1, intercept + 1, 41):
            assert nll(y, sigmoid(a * z + b)) >= mine - 1e-12


def test_separated_labels_get_platts_targets():
    calibrator = PlattScaling(shrink="platt").fit([-1e4] * 3 + [1e4] * 8, [0] * 3 + [1] * 8)
    assert calibrator.predict_proba([-1e4, 1e4]) == pytest.approx([1 / 5, 9 / 10], abs=1e-9)
    sure = PlattScaling(shrink=None).fit([-1.0, -2.0, 1.0, 2.0], [0, 0, 1, 1])
    assert np.isfinite(line(sure)).all()
    assert nll([0, 0, 1, 1], sure.predict_proba([-1.0, -2.0, 1.0, 2.0])) < 1e-9


@pytest.mark.parametrize("at", [0.0, 3.0, -1e4])
def test_one_distinct_score_gets_the_mean_target(at):
    calibrator = PlattScaling(shrink=None).fit([at] * 8, [1] * 2 + [0] * 6)
    assert calibrator.predict_proba([at]) == pytest.approx([0.25], abs=1e-9)
    smoothed = PlattScaling(shrink="platt").fit([at] * 8, [1] * 2 + [0] * 6)
    assert smoothed.predict_proba([at]) == pytest.approx([(2 * 3 / 4 + 6 / 8) / 8], abs=1e-9)


def test_weights_are_repetitions_and_order_is_nothing():
    z, y = drawn(150, 3)
    times = np.random.default_rng(3).integers(1, 4, 150)
    once = PlattScaling(shrink="platt").fit(z, y, times)
    assert line(
        PlattScaling(shrink="platt").fit(np.repeat(z, times), np.repeat(y, times))
    ) == pytest.approx(line(once), abs=1e-9)
    order = np.random.default_rng(4).permutation(150)
    again = PlattScaling(shrink="platt").fit(z[order], y[order], times[order])
    assert line(again) == pytest.approx(line(once), abs=1e-9)


def test_two_columns_are_their_difference():
    z, y = drawn(100, 5)
    columns = np.column_stack([1.5 - 0.3 * z, 1.5 + 0.7 * z])
    one, two = PlattScaling(shrink="platt").fit(z, y), PlattScaling(shrink="platt").fit(columns, y)
    assert two.predict_proba(columns)[:, 1] == pytest.approx(one.predict_proba(z), abs=1e-12)
    assert two.predict_proba(columns).sum(axis=1) == pytest.approx(np.ones(100), abs=1e-15)


def test_its_slope_is_the_inverse_temperature_where_classes_are_symmetric():
    z, y = drawn(400, 6, intercept=0.0)
    z, y = np.r_[z, -z], np.r_[y, 1 - y]
    slope, intercept = line(PlattScaling(shrink=None).fit(z, y))
    assert intercept == pytest.approx(0.0, abs=1e-9)
    assert slope == pytest.approx(1 / TemperatureScaling().fit(z, y).temperature_, rel=1e-6)


def test_more_classes_have_a_line_each_and_are_normalised():
    draw = WORLDS["multiclass"].draw(600, 7)
    logits = np.log(draw.probs)
    calibrator = PlattScaling(shrink="platt").fit(logits, draw.labels)
    odds = log_odds_from_logits(logits)
    alone = np.empty((600, 5))
    for k in range(5):
        own = PlattScaling(shrink="platt").fit(odds[:, k], draw.labels == k)
        assert line(calibrator, k) == pytest.approx(line(own), rel=1e-9)
        alone[:, k] = own.predict_proba(odds[:, k])
    expected = alone / alone.sum(axis=1, keepdims=True)
    assert calibrator.predict_proba(logits) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_extreme_logits_give_rows_that_sum_to_one(scale):
    rng = np.random.default_rng(8)
    logits, y = scale * rng.normal(size=(60, 4)), np.arange(60) % 4
    found = (
        PlattScaling(shrink="platt").fit(logits, y).predict_proba(np.r_[logits, 1e4 * np.eye(4)])
    )
    assert np.isfinite(found).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(64), abs=1e-12)


def test_three_events_in_ten_thousand():
    rng = np.random.default_rng(9)
    z = rng.normal(size=10_000) - 8
    y = np.zeros(10_000, dtype=int)
    y[np.argsort(z)[[-1, -40, -900]]] = 1
    calibrator = PlattScaling(shrink=None).fit(z, y)
    # A line with an intercept matches the number of events.
    assert calibrator.predict_proba(z).sum() == pytest.approx(3.0, rel=1e-6)
    smooth = PlattScaling(shrink="platt").fit(z, y)
    targets = platt_targets(y == 1, None, smooth=True)
    assert smooth.predict_proba(z).sum() == pytest.approx(targets.sum(), rel=1e-6)


@pytest.mark.parametrize("smooth", [True, False])
def test_saved_and_loaded_it_says_the_same_to_the_last_bit(smooth):
    z, y = drawn(100, 10)
    calibrator = PlattScaling(shrink="platt" if smooth else None).fit(z, y)
    text = json.dumps(calibrator.to_dict(), allow_nan=False)
    loaded = Calibrator.from_dict(json.loads(text))
    assert loaded.shrink == ("platt" if smooth else None)
    assert (loaded.predict_log_proba(z) == calibrator.predict_log_proba(z)).all()


def test_the_pull_towards_the_identity_is_what_it_says():
    rng = np.random.default_rng(5)
    z = rng.normal(-2.0, 1.5, 60)
    y = (rng.random(60) < 1 / (1 + np.exp(-2.0 * z))).astype(int)

    def objective(theta):
        odds = theta[0] * z + theta[1]
        away = (theta[0] - 1.0) ** 2 + theta[1] ** 2
        return np.logaddexp(0.0, np.where(y == 1, -odds, odds)).mean() + away / 60

    found = minimize(objective, [1.0, 0.0], method="Nelder-Mead", tol=1e-12)
    assert line(PlattScaling().fit(z, y)) == pytest.approx(found.x, abs=1e-5)


def test_the_pull_keeps_separated_labels_near_the_model():
    calibrator = PlattScaling().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    slope, intercept = line(calibrator)
    assert 1.0 < slope < 3.0
    assert intercept == pytest.approx(0.0, abs=1e-9)


def test_an_unknown_way_to_shrink_is_refused():
    with refuses(InputError, "shrink", "'identity'", "'platt'", "None", "got 'l2'"):
        PlattScaling(shrink="l2").fit([-1.0, 1.0], [0, 1])


def test_the_pull_on_one_distinct_score_by_hand():
    # With g = p - frequency, the slopes cancel where a = 1 - N g s / 2 and b = -N g / 2.
    s, g, n = 2.0, -0.02, 20.0
    a, b = 1 - n * g * s / 2, -n * g / 2
    p = sigmoid(a * s + b)
    calibrator = PlattScaling().fit([s, s], [1, 0], n * np.array([p - g, 1 - p + g]))
    assert line(calibrator) == pytest.approx((a, b), abs=1e-9)


def test_with_the_pull_weights_are_repetitions_and_many_rows_do_not_feel_it():
    z, y = drawn(150, 11)
    times = np.random.default_rng(11).integers(1, 4, 150)
    once = line(PlattScaling().fit(z, y, times))
    many = line(PlattScaling().fit(np.repeat(z, times), np.repeat(y, times)))
    assert many == pytest.approx(once, abs=1e-9)
    z, y = drawn(100_000, 12)
    free = line(PlattScaling(shrink=None).fit(z, y))
    assert line(PlattScaling().fit(z, y)) == pytest.approx(free, abs=2e-4)


def test_with_the_pull_the_slope_stays_positive_and_extremes_stay_sound():
    z, y = drawn(300, 13, slope=-1.0)
    assert line(PlattScaling().fit(z, y))[0] == MIN_SLOPE
    for scale in (1e-6, 1e4):
        calibrator = PlattScaling().fit(scale * z, 1 - y)
        found = calibrator.predict_proba([[0.0, 1e4], [1e4, 0.0], [0.0, 0.0]])
        assert np.isfinite(found).all()
        assert found.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-12)
