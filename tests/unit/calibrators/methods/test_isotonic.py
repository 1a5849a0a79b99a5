"""Isotonic calibration: by hand, by the min-max formula, and where the truth is known."""

import json

import numpy as np
import pytest

from calibrant.calibrators import Calibrator, IsotonicCalibration
from calibrant.calibrators.methods.isotonic import fit_isotonic_steps
from calibrant.convert import log_odds_from_logits
from calibrant.errors import InputError
from calibrant.metrics import brier, nll
from calibrant.testing import WORLDS


def slowly(scores, events, weights, pseudo_count):
    """Fit by the min-max formula: the largest over starts of the smallest mean up to any end."""
    distinct = np.unique(scores)
    total = np.array([weights[scores == s].sum() for s in distinct])
    up = np.array([(weights * events)[scores == s].sum() for s in distinct])
    up[0] += pseudo_count
    total[0] += pseudo_count
    total[-1] += pseudo_count
    m = len(distinct)

    def mean(j, k):
        return up[j : k + 1].sum() / total[j : k + 1].sum()

    return [max(min(mean(j, k) for k in range(i, m)) for j in range(i + 1)) for i in range(m)]


def drawn(n, seed, digits=1):
    rng = np.random.default_rng(seed)
    z = np.round(2 * rng.normal(size=n), digits)
    return z, (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)


def test_pooling_by_hand():
    # With rising scores 0 | 1 0 0 | 1 1 0 | 1: the pools are 0, 1/3, 2/3 and 1.
    labels = [0, 1, 0, 0, 1, 1, 0, 1]
    calibrator = IsotonicCalibration(pseudo_count=0).fit(np.arange(8.0), labels)
    expected = [0, 1 / 3, 1 / 3, 1 / 3, 2 / 3, 2 / 3, 2 / 3, 1]
    assert calibrator.predict_proba(np.arange(8.0)) == pytest.approx(expected)
    assert calibrator.maps_[0]["scores"].tolist() == [0, 1, 3, 4, 6, 7]


def test_the_extra_rows_by_hand():
    # Four non-events and one more event: 1/5. Two events and one more non-event: 2/3.
    calibrator = IsotonicCalibration().fit([-1.0] * 4 + [1.0] * 2, [0] * 4 + [1] * 2)
    assert calibrator.predict_proba([-9.0, -1.0, 1.0, 9.0]) == pytest.approx(
        [0.2, 0.2, 2 / 3, 2 / 3]
    )
    assert calibrator.predict_proba([0.0]) == pytest.approx([(0.2 + 2 / 3) / 2])
    half = IsotonicCalibration(pseudo_count=0.5).fit([-1.0] * 4 + [1.0] * 2, [0] * 4 + [1] * 2)
    assert half.predict_proba([-1.0, 1.0]) == pytest.approx([0.5 / 4.5, 2 / 2.5])


@pytest.mark.parametrize("pseudo_count", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_min_max_formula_gives_the_same(seed, pseudo_count):
    z, y = drawn(60, seed)
    weights = np.random.default_rng(seed).uniform(0.1, 5.0, 60) if seed % 2 else np.ones(60)
    calibrator = IsotonicCalibration(pseudo_count=pseudo_count).fit(z, y, weights)
    expected = slowly(z, y, weights, pseudo_count)
    assert calibrator.predict_proba(np.unique(z)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_no_other_rising_map_has_a_lower_brier_score_or_log_loss(seed):
    z, y = drawn(100, seed)
    found = IsotonicCalibration(pseudo_count=0).fit(z, y).predict_proba(z)
    rng = np.random.default_rng(seed)
    where = np.unique(z, return_inverse=True)[1]
    for _ in range(200):
        steps = np.sort(rng.random(where.max() + 1))
        other = np.clip(found + rng.choice([0.3, 0.03]) * (steps[where] - 0.5), 0.0, 1.0)
        assert brier(y, found) <= brier(y, other) + 1e-12
        assert nll(y, found) <= nll(y, other) + 1e-12


def test_between_steps_it_is_linear_and_outside_level():
    calibrator = IsotonicCalibration(pseudo_count=0).fit([0.0, 0.0, 4.0, 4.0], [0, 1, 1, 1])
    asked = [-1e4, 0.0, 1.0, 3.0, 4.0, 1e4]
    assert calibrator.predict_proba(asked) == pytest.approx([0.5, 0.5, 0.625, 0.875, 1.0, 1.0])


@pytest.mark.parametrize("name", ["calibrated", "binary"])
def test_the_posterior_is_recovered(name):
    draw = WORLDS[name].draw(200_000, 1)
    p = np.clip(draw.probs, 1e-12, 1 - 1e-12)
    logits = np.log(p) - np.log1p(-p)
    found = IsotonicCalibration().fit(logits, draw.labels).predict_proba(logits)
    assert np.abs(found - draw.posterior).mean() < 0.01


def test_any_rising_change_of_the_scores_gives_the_same_fit():
    z, y = drawn(200, 2)
    usual = IsotonicCalibration().fit(z, y).predict_proba(z)
    for change in (np.arctan, lambda s: s**3 + s, lambda s: 1e4 * s, lambda s: 1e-6 * s):
        assert IsotonicCalibration().fit(change(z), y).predict_proba(change(z)) == pytest.approx(
            usual
        )


def test_means_are_kept():
    z, y = drawn(300, 3)
    found = IsotonicCalibration(pseudo_count=0).fit(z, y).predict_proba(z)
    assert found.mean() == pytest.approx(y.mean(), abs=1e-12)
    for value in np.unique(found):
        assert y[found == value].mean() == pytest.approx(value, abs=1e-12)


def test_labels_that_contradict_the_scores_give_one_step():
    calibrator = IsotonicCalibration(pseudo_count=0).fit(np.arange(10.0), [1] * 4 + [0] * 6)
    assert calibrator.predict_proba([-5.0, 3.0, 20.0]) == pytest.approx([0.4] * 3)
    assert len(calibrator.maps_[0]["scores"]) == 2


@pytest.mark.parametrize("at", [0.0, -1e4])
def test_one_distinct_score(at):
    calibrator = IsotonicCalibration().fit([at] * 8, [1] * 2 + [0] * 6)
    assert calibrator.predict_proba([at, at + 1]) == pytest.approx([0.3, 0.3])


def test_the_textbook_fit_is_certain_and_the_default_is_not():
    z, y = np.r_[-2.0 * np.ones(9), 2.0 * np.ones(9)], np.repeat([0, 1], 9)
    sure = IsotonicCalibration(pseudo_count=0).fit(z, y)
    assert sure.predict_proba([-2.0, 2.0]).tolist() == [0.0, 1.0]
    assert sure.predict_log_proba([-2.0, 2.0]).tolist() == [-np.inf, 0.0]
    assert IsotonicCalibration().fit(z, y).predict_proba([-2.0, 2.0]) == pytest.approx([0.1, 0.9])


def test_a_row_that_no_map_wants_is_shared_evenly():
    # Each class is surely absent below 0 and surely present above.
    logits = np.array([[3.0, 0, 0], [0, 3.0, 0], [0, 0, 3.0]] * 3)
    calibrator = IsotonicCalibration(pseudo_count=0).fit(logits, [0, 1, 2] * 3)
    found = calibrator.predict_proba([[0.0, 0.0, 0.0], [5.0, 0.0, 0.0], [1e4, -1e4, 0.0]])
    assert found == pytest.approx(np.array([[1 / 3] * 3, [1, 0, 0], [1, 0, 0]]))


def test_more_classes_have_a_map_each_and_are_normalised():
    draw = WORLDS["multiclass"].draw(500, 4)
    logits = np.log(draw.probs)
    odds = log_odds_from_logits(logits)
    found = IsotonicCalibration().fit(logits, draw.labels).predict_proba(logits)
    alone = np.column_stack(
        [
            IsotonicCalibration().fit(odds[:, k], draw.labels == k).predict_proba(odds[:, k])
            for k in range(5)
        ]
    )
    assert found == pytest.approx(alone / alone.sum(axis=1, keepdims=True), abs=1e-12)
    assert found.sum(axis=1) == pytest.approx(np.ones(500), abs=1e-12)


def test_weights_are_repetitions_and_order_is_nothing():
    z, y = drawn(120, 5)
    times = np.random.default_rng(5).integers(1, 4, 120)
    once = IsotonicCalibration().fit(z, y, times).predict_proba(z)
    many = IsotonicCalibration().fit(np.repeat(z, times), np.repeat(y, times))
    assert many.predict_proba(z) == pytest.approx(once, abs=1e-12)
    order = np.random.default_rng(6).permutation(120)
    again = IsotonicCalibration().fit(z[order], y[order], times[order])
    assert again.predict_proba(z) == pytest.approx(once, abs=1e-12)


def test_two_columns_are_their_difference():
    z, y = drawn(100, 7)
    columns = np.column_stack([-z, np.zeros(100)])
    found = IsotonicCalibration().fit(columns, y).predict_proba(columns)
    assert found[:, 1] == pytest.approx(IsotonicCalibration().fit(z, y).predict_proba(z))
    assert found.sum(axis=1) == pytest.approx(np.ones(100), abs=1e-15)


@pytest.mark.parametrize("pseudo_count", [0.0, 1.0])
def test_saved_and_loaded_it_says_the_same_to_the_last_bit(pseudo_count):
    z, y = drawn(200, 8)
    calibrator = IsotonicCalibration(pseudo_count=pseudo_count).fit(z, y)
    loaded = Calibrator.from_dict(json.loads(json.dumps(calibrator.to_dict(), allow_nan=False)))
    assert loaded.pseudo_count == pseudo_count
    asked = np.r_[z, np.linspace(-9, 9, 100)]
    assert (loaded.predict_log_proba(asked) == calibrator.predict_log_proba(asked)).all()


def test_steps_come_with_their_weights():
    scores, events = np.array([1.0, 0.0, 1.0]), np.array([True, False, False])
    distinct, total, values = fit_isotonic_steps(scores, events, None, 0.5)
    assert distinct.tolist() == [0.0, 1.0]
    assert total.tolist() == [1.5, 2.5]
    assert values == pytest.approx([0.5 / 1.5, 1 / 2.5])


@pytest.mark.parametrize("count", [-1.0, np.nan, np.inf])
def test_other_pseudo_counts_are_refused(count):
    with pytest.raises(InputError, match="pseudo_count"):
        IsotonicCalibration(pseudo_count=count).fit([0.0, 1.0], [0, 1])
