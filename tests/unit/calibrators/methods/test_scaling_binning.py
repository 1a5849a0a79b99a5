"""Scaling-binning: means of Platt's curve by hand and in plain loops, weights, saving."""

import json

import numpy as np
import pytest

from calibrant.calibrators import Calibrator
from calibrant.calibrators.methods.platt import PlattScaling
from calibrant.calibrators.methods.scaling_binning import ScalingBinning
from calibrant.errors import InputError
from calibrant.testing import WORLDS


def logits_of(name, n, seed):
    draw = WORLDS[name].draw(n, seed)
    probs = np.clip(draw.probs.astype(np.float64), 1e-6, 1 - 1e-6)
    return (np.log(probs) - np.log1p(-probs) if probs.ndim == 1 else np.log(probs)), draw.labels


def test_by_hand_on_two_scores():
    # Three of four right: Platt's targets are 5/6 and 1/6, so that the curve passes through
    # (3 x 5/6 + 1/6) / 4 = 2/3 at 2 and 1/3 at -2: slope log(2) / 2, intercept 0.
    logits, labels = [-2.0] * 4 + [2.0] * 4, [0, 0, 0, 1, 1, 1, 1, 0]
    calibrator = ScalingBinning(2, shrink="platt").fit(logits, labels)
    assert calibrator.maps_[0]["slope"] == pytest.approx(np.log(2) / 2, abs=1e-7)
    assert calibrator.maps_[0]["intercept"] == pytest.approx(0.0, abs=1e-7)
    assert calibrator.predict_proba([-9.0, 1.9, 2.0]) == pytest.approx([1 / 3, 1 / 3, 2 / 3])
    assert ScalingBinning(1, shrink="platt").fit(logits, labels).predict_proba(
        [5.0]
    ) == pytest.approx([0.5])


@pytest.mark.parametrize("name", ["binary", "tied", "rare"])
@pytest.mark.parametrize("n_bins", [1, 4, 10])
def test_it_is_the_mean_of_platts_curve_in_each_bin(name, n_bins):
    logits, labels = logits_of(name, 400, 1)
    curve = PlattScaling(shrink="platt").fit(logits, labels).predict_proba(logits)
    found = ScalingBinning(n_bins, shrink="platt").fit(logits, labels).predict_proba(logits)
    bins = [int(n_bins * (logits < s).sum() / 400 + 1e-9) for s in logits]
    for b in set(bins):
        inside = np.array(bins) == b
        assert found[inside] == pytest.approx(np.full(inside.sum(), curve[inside].mean()))


def test_as_many_bins_as_rows_leave_the_curve_as_it_is():
    logits, labels = logits_of("binary", 200, 2)
    curve = PlattScaling(shrink="platt").fit(logits, labels).predict_proba(logits)
    found = ScalingBinning(200, shrink="platt").fit(logits, labels).predict_proba(logits)
    assert found == pytest.approx(curve, abs=1e-12)
    more = ScalingBinning(1000, shrink="platt").fit(logits, labels).predict_proba(logits)
    assert more == pytest.approx(curve, abs=1e-12)


def test_binning_keeps_the_mean_and_lowers_the_spread():
    logits, labels = logits_of("binary", 1000, 3)
    curve = PlattScaling(shrink="platt").fit(logits, labels).predict_proba(logits)
    spreads = []
    for n_bins in (50, 10, 2):
        found = ScalingBinning(n_bins, shrink="platt").fit(logits, labels).predict_proba(logits)
        assert found.mean() == pytest.approx(curve.mean())
        assert len(np.unique(found)) <= n_bins
        spreads.append(found.std())
    assert curve.std() > spreads[0] > spreads[1] > spreads[2]


@pytest.mark.parametrize("name", ["binary", "tied", "multiclass"])
def test_a_weight_equals_a_repetition(name):
    logits, labels = logits_of(name, 250, 4)
    times = np.random.default_rng(0).integers(0, 4, 250)
    weighted = ScalingBinning(shrink="platt").fit(logits, labels, times).predict_proba(logits)
    repeated = ScalingBinning(shrink="platt").fit(
        np.repeat(logits, times, axis=0), np.repeat(labels, times)
    )
    assert weighted == pytest.approx(repeated.predict_proba(logits), abs=1e-7)


@pytest.mark.parametrize("name", ["binary", "multiclass"])
def test_saved_and_loaded_it_answers_the_same_bits(name):
    logits, labels = logits_of(name, 200, 5)
    calibrator = ScalingBinning(6, shrink="platt").fit(logits, labels)
    loaded = Calibrator.from_dict(json.loads(json.dumps(calibrator.to_dict(), allow_nan=False)))
    assert isinstance(loaded, ScalingBinning)
    assert np.array_equal(loaded.predict_log_proba(logits), calibrator.predict_log_proba(logits))


def test_constant_separated_contrary_and_saturated_scores():
    constant = ScalingBinning(shrink="platt").fit(np.full(6, 2.0), [0, 0, 0, 0, 1, 1])
    # Targets 3/4 (twice) and 1/6 (four times) have the mean 13/36.
    assert constant.predict_proba([2.0]) == pytest.approx([13 / 36], abs=1e-6)
    separated = ScalingBinning(2, shrink="platt").fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    probs = separated.predict_proba([-2.0, 2.0])
    assert 0 < probs[0] < 0.5 < probs[1] < 1
    contrary = ScalingBinning(2, shrink="platt").fit([-2.0, -1.0, 1.0, 2.0], [1, 1, 0, 0])
    assert contrary.predict_proba([-2.0, 2.0]) == pytest.approx([0.5, 0.5], abs=1e-5)
    huge = ScalingBinning(shrink="platt").fit(np.linspace(-1e4, 1e4, 40), np.arange(40) >= 20)
    assert np.isfinite(huge.predict_log_proba(np.array([[0.0, 1e4], [0.0, -1e4]]))).all()


@pytest.mark.parametrize("n_bins", [0, -3, 1.5])
def test_an_impossible_number_of_bins_is_refused(n_bins):
    with pytest.raises(InputError, match="n_bins"):
        ScalingBinning(n_bins).fit([0.0, 1.0], [0, 1])
