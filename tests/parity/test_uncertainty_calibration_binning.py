"""uncertainty-calibration: histograms and the second step of scaling-binning agree."""

import numpy as np
import pytest
from calibration import utils
from calibration.calibrators import (
    HistogramCalibrator,
    HistogramMarginalCalibrator,
    PlattBinnerCalibrator,
)
from tests.parity.peer_rows import drawn

from calibrant.calibrators.methods.histogram import HistogramBinning
from calibrant.calibrators.methods.platt import PlattScaling
from calibrant.calibrators.methods.scaling_binning import ScalingBinning
from calibrant.convert import log_odds_from_logits


def rows(name, n, seed):
    labels, probs = drawn(name, n, seed)
    probs = np.clip(probs, 1e-6, 1 - 1e-6)
    return labels, probs, np.log(probs) - np.log1p(-probs)


@pytest.mark.parametrize("name", ["binary", "calibrated"])
@pytest.mark.parametrize("n_bins", [1, 5, 15])
def test_histograms_of_equal_mass_agree(name, n_bins):
    # Their bins differ by a row unless the rows divide; between bins they cut half way.
    labels, probs, logits = rows(name, 750, 0)
    peer = HistogramCalibrator(750, n_bins)
    peer.train_calibration(probs, labels)
    ours = HistogramBinning(n_bins, pseudo_count=0).fit(logits, labels)
    assert ours.predict_proba(logits) == pytest.approx(peer.calibrate(probs), abs=1e-12)


@pytest.mark.parametrize("n_bins", [4, 10, 40])
def test_histograms_of_equal_width_agree_and_so_do_their_empty_bins(n_bins):
    labels, probs, logits = rows("calibrated", 100, 1)
    peer = utils.get_histogram_calibrator(probs, labels, utils.get_equal_prob_bins(probs, n_bins))
    ours = HistogramBinning(n_bins, scheme="width", pseudo_count=0).fit(logits, labels)
    asked = np.linspace(0.0012, 0.9987, 300)
    expected = peer(asked)
    found = ours.predict_proba(np.log(asked / (1 - asked)))
    assert found == pytest.approx(expected, abs=1e-9)


def test_histograms_of_more_classes_agree_before_they_are_normalised():
    labels, probs = drawn("multiclass", 1000, 2)
    peer = HistogramMarginalCalibrator(1000, 8)
    peer.train_calibration(probs, labels)
    theirs = peer.calibrate(probs)
    odds = log_odds_from_logits(np.log(probs))
    alone = [
        HistogramBinning(8, pseudo_count=0).fit(odds[:, k], labels == k).predict_proba(odds[:, k])
        for k in range(5)
    ]
    assert np.column_stack(alone) == pytest.approx(theirs, abs=1e-12)
    ours = HistogramBinning(8, pseudo_count=0).fit(np.log(probs), labels)
    expected = theirs / theirs.sum(axis=1, keepdims=True)
    assert ours.predict_proba(np.log(probs)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["binary", "calibrated"])
def test_scaling_binning_agrees_given_the_same_curve(name):
    labels, _, logits = rows(name, 800, 3)
    curve = PlattScaling().fit(logits, labels).predict_proba(logits)
    peer = utils.get_discrete_calibrator(curve, utils.get_equal_bins(curve, 10))
    ours = ScalingBinning(10).fit(logits, labels)
    assert ours.predict_proba(logits) == pytest.approx(peer(curve), abs=1e-12)


@pytest.mark.parametrize("name", ["binary", "calibrated"])
def test_scaling_binning_agrees_up_to_platts_targets(name):
    # Their curve is fitted to 0 and 1, ours to Platt's targets, which come closer with more rows.
    gaps = []
    for n in (200, 20_000):
        labels, probs, logits = rows(name, n, 4)
        peer = PlattBinnerCalibrator(n, 10)
        peer.train_calibration(probs, labels)
        ours = ScalingBinning(10).fit(logits, labels)
        gaps.append(np.abs(ours.predict_proba(logits) - peer.calibrate(probs)).max())
    assert gaps[0] < 0.05
    assert gaps[1] < 1e-3
    assert gaps[1] < gaps[0]
