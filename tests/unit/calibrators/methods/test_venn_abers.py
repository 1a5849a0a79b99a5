"""Venn-Abers: against isotonic regression with the row added, by hand, weights, saving."""

import json

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from calibrant.calibrators import Calibrator
from calibrant.calibrators.methods.venn_abers import VennAbers, _fit_with_positive
from calibrant.convert import log_odds_from_logits
from calibrant.errors import InputError, NotFitted
from calibrant.testing import WORLDS


def logits_of(name, n, seed):
    draw = WORLDS[name].draw(n, seed)
    probs = np.clip(draw.probs.astype(np.float64), 1e-6, 1 - 1e-6)
    return (np.log(probs) - np.log1p(-probs) if probs.ndim == 1 else np.log(probs)), draw.labels


def with_the_row(scores, labels, weights, score, label):
    """Fit isotonic regression with (score, label) added, and return its value there."""
    scores, labels = np.append(scores, score), np.append(labels, label)
    weights = np.append(weights, 1.0)
    distinct, place = np.unique(scores, return_inverse=True)
    mass = np.bincount(place, weights)
    fitted = isotonic_regression(np.bincount(place, weights * labels) / mass, weights=mass).x
    return fitted[np.searchsorted(distinct, score)]


def asked_of(logits):
    """Return scores seen, between those seen, and beyond them."""
    low, high = np.sort(logits)[[0, -1]]
    between = 0.5 * (np.sort(logits)[:-1] + np.sort(logits)[1:])
    return np.concatenate([[low - 1.0, high + 1.0], logits[:40], between[::7]])


@pytest.mark.parametrize("name", ["binary", "tied", "rare"])
@pytest.mark.parametrize("n", [12, 150])
@pytest.mark.parametrize("weighted", ["no", "whole", "any"])
def test_the_pair_is_two_isotonic_fits_with_the_row_added(name, n, weighted):
    logits, labels = logits_of(name, n, 1)
    labels[0], labels[1] = 0, 1
    rng = np.random.default_rng(n)
    weights = {"no": None, "whole": rng.integers(1, 4, n) * 1.0, "any": rng.random(n) + 0.01}[
        weighted
    ]
    asked = asked_of(logits)
    p0, p1 = VennAbers().fit(logits, labels, weights).predict_pair(asked)
    each = np.ones(n) if weights is None else weights
    for found, label in ((p0, 0), (p1, 1)):
        slow = [with_the_row(logits, labels, each, s, label) for s in asked]
        assert found == pytest.approx(slow, abs=1e-12)


def test_by_hand_on_three_rows():
    calibrator = VennAbers().fit([1.0, 2.0, 3.0], [0, 1, 0])
    p0, p1 = calibrator.predict_pair([0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0])
    assert p0 == pytest.approx([0, 0, 0, 1 / 3, 1 / 3, 1 / 3, 1 / 3])
    assert p1 == pytest.approx([1 / 2, 1 / 2, 2 / 3, 2 / 3, 2 / 3, 2 / 3, 1])
    assert calibrator.predict_proba([2.0]) == pytest.approx([(2 / 3) / (1 - 1 / 3 + 2 / 3)])


@pytest.mark.parametrize("name", ["binary", "tied", "rare", "calibrated"])
def test_the_pair_is_ordered_rises_and_holds_the_merged_answer(name):
    logits, labels = logits_of(name, 500, 2)
    calibrator = VennAbers().fit(logits, labels)
    asked = np.sort(asked_of(logits))
    p0, p1 = calibrator.predict_pair(asked)
    p = calibrator.predict_proba(asked)
    assert (p0 <= p1).all()
    assert (np.diff(p0) >= -1e-12).all()
    assert (np.diff(p1) >= -1e-12).all()
    assert p == pytest.approx(p1 / (1 - p0 + p1))
    assert ((p0 <= p + 1e-12) & (p <= p1 + 1e-12)).all()
    assert ((p > 0) & (p < 1)).all()


def test_the_pair_surrounds_isotonic_regression():
    logits, labels = logits_of("binary", 400, 3)
    distinct, place = np.unique(logits, return_inverse=True)
    rate = np.bincount(place, labels) / np.bincount(place)
    isotonic = isotonic_regression(rate, weights=np.bincount(place)).x
    p0, p1 = VennAbers().fit(logits, labels).predict_pair(distinct)
    assert (p0 <= isotonic + 1e-12).all()
    assert (isotonic <= p1 + 1e-12).all()


def test_classes_may_change_places():
    logits, labels = logits_of("tied", 200, 4)
    p0, p1 = VennAbers().fit(logits, labels).predict_pair(logits)
    q0, q1 = VennAbers().fit(-logits, 1 - labels).predict_pair(-logits)
    assert p0 == pytest.approx(1 - q1, abs=1e-12)
    assert p1 == pytest.approx(1 - q0, abs=1e-12)


def test_fresh_rows_lie_between_the_means_of_the_pair():
    logits, labels = logits_of("binary", 12_000, 5)
    calibrator = VennAbers().fit(logits[:2000], labels[:2000])
    p0, p1 = calibrator.predict_pair(logits[2000:])
    noise = 4 * 0.5 / np.sqrt(2000)
    assert p0.mean() - noise < labels[2000:].mean() < p1.mean() + noise


@pytest.mark.parametrize("name", ["binary", "tied", "multiclass"])
def test_a_weight_equals_a_repetition(name):
    logits, labels = logits_of(name, 250, 6)
    times = np.random.default_rng(0).integers(0, 4, 250)
    weighted = VennAbers().fit(logits, labels, times)
    repeated = VennAbers().fit(np.repeat(logits, times, axis=0), np.repeat(labels, times))
    for ours, theirs in zip(
        weighted.predict_pair(logits), repeated.predict_pair(logits), strict=True
    ):
        assert ours == pytest.approx(theirs, abs=1e-12)


def test_shapes_of_the_pair():
    logits, labels = logits_of("binary", 60, 7)
    calibrator = VennAbers().fit(np.column_stack([0 * logits, logits]), labels)
    p0, p1 = calibrator.predict_pair(np.column_stack([0 * logits, logits]))
    assert p0.shape == p1.shape == (60,)
    assert np.array_equal(p0, calibrator.predict_pair(logits)[0])


def test_more_classes_have_a_pair_each_and_are_normalised():
    logits, labels = logits_of("multiclass", 300, 8)
    calibrator = VennAbers().fit(logits, labels)
    p0, p1 = calibrator.predict_pair(logits)
    assert p0.shape == p1.shape == (300, 5)
    odds = log_odds_from_logits(logits)
    for k in range(5):
        alone = VennAbers().fit(odds[:, k], labels == k).predict_pair(odds[:, k])
        assert np.array_equal(alone[0], p0[:, k])
        assert np.array_equal(alone[1], p1[:, k])
    merged = p1 / (1 - p0 + p1)
    expected = merged / merged.sum(axis=1, keepdims=True)
    assert calibrator.predict_proba(logits) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["binary", "multiclass"])
def test_saved_and_loaded_it_answers_the_same_bits(name):
    logits, labels = logits_of(name, 300, 9)
    calibrator = VennAbers().fit(logits, labels)
    loaded = Calibrator.from_dict(json.loads(json.dumps(calibrator.to_dict(), allow_nan=False)))
    assert isinstance(loaded, VennAbers)
    assert np.array_equal(loaded.predict_log_proba(logits), calibrator.predict_log_proba(logits))
    assert np.array_equal(loaded.predict_pair(logits), calibrator.predict_pair(logits))


@pytest.mark.parametrize(
    "change", [{"at0": []}, {"p0": [0.1, 1.0]}, {"p1": [0.0, 1.0]}, {"at1": [3.0, 2.0, 1.0]}]
)
def test_a_damaged_file_is_refused(change):
    saved = VennAbers().fit([1.0, 2.0], [0, 1]).to_dict()
    saved["params"]["maps"][0].update(change)
    with pytest.raises(InputError, match="damaged"):
        Calibrator.from_dict(saved)


def test_constant_and_separated_scores():
    constant = VennAbers().fit(np.zeros(4), [0, 0, 0, 1])
    p0, p1 = constant.predict_pair([-1.0, 0.0, 1.0])
    assert p0 == pytest.approx([0, 1 / 5, 1 / 5])
    assert p1 == pytest.approx([2 / 5, 2 / 5, 1])
    separated = VennAbers().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    probs = separated.predict_proba([-9.0, -2.0, 2.0, 9.0])
    assert ((probs > 0) & (probs < 1)).all()


def test_the_pair_needs_a_fit():
    with pytest.raises(NotFitted):
        VennAbers().predict_pair([0.0])


def test_example_of_fit_with_positive():
    assert (
        repr(_fit_with_positive(np.ones(3), np.array([0.0, 1.0, 0.0])))
        == "array([0.5       , 0.66666667, 0.66666667, 1.        ])"
    )
