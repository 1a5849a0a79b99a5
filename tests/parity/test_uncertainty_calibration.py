"""uncertainty-calibration (Kumar et al.): debiased and plug-in errors on its own bins."""

import calibration as peer
import numpy as np
import pytest
from calibration.utils import get_selective_stats as peer_selective_stats
from tests.parity.peer_rows import EVERY, MULTICLASS, NO_TIES, drawn, one_problem

from calibrant.metrics import aurc, ece, ece_classwise, ece_debiased
from reproductions import parity

EXACT = 1e-12


def debiased(labels, probs, bins=15):
    return peer.lower_bound_scaling_ce(probs, labels, num_bins=bins, mode="top-label")


@pytest.mark.parametrize("n", [1500, 1507])
@pytest.mark.parametrize("name", EVERY)
def test_the_reproduction_of_the_debiased_error_is_the_reference(name, n):
    labels, probs = drawn(name, n, 0)
    events, scores = one_problem(labels, probs)
    for bins in (10, 15):
        assert parity.debiased_l2(events, scores, bins=bins) == pytest.approx(
            debiased(labels, probs, bins), abs=EXACT
        )


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", EVERY)
def test_the_debiased_error_agrees_where_rows_divide_evenly_ties_or_not(name, seed):
    labels, probs = drawn(name, 1500, seed)
    for bins in (10, 15):
        assert ece_debiased(labels, probs, n_bins=bins) == pytest.approx(
            debiased(labels, probs, bins), abs=EXACT
        )


@pytest.mark.parametrize("name", ["binary", "multiclass", "long_tailed"])
def test_the_debiased_error_agrees_in_single_precision(name):
    labels, probs = drawn(name, 1500, 4, np.float32)
    assert ece_debiased(labels, probs) == pytest.approx(debiased(labels, probs), abs=1e-6)


@pytest.mark.parametrize("name", NO_TIES)
def test_the_debiased_error_agrees_on_equally_wide_bins(name):
    labels, probs = drawn(name, 1507, 5)
    theirs = peer.lower_bound_scaling_ce(
        probs, labels, binning_scheme=peer.get_equal_prob_bins, mode="top-label"
    )
    assert ece_debiased(labels, probs, scheme="width") == pytest.approx(theirs, abs=EXACT)


@pytest.mark.parametrize("name", NO_TIES)
def test_plug_in_errors_agree_on_both_kinds_of_bins(name):
    labels, probs = drawn(name, 1500, 6)
    assert ece(labels, probs) == pytest.approx(peer.get_ece(probs, labels), abs=EXACT)
    assert ece(labels, probs, scheme="mass") == pytest.approx(
        peer.get_ece_em(probs, labels), abs=EXACT
    )


@pytest.mark.parametrize("name", MULTICLASS)
def test_class_wise_errors_agree_with_its_marginal_mode(name):
    labels, probs = drawn(name, 1500, 7)
    assert ece_classwise(labels, probs) == pytest.approx(
        peer.get_ece(probs, labels, mode="marginal"), abs=EXACT
    )


def test_the_reproduction_of_the_debiased_l1_error_agrees_up_to_its_random_draws():
    labels, probs = drawn("binary", 1500, 8)
    np.random.seed(0)  # the reference draws from numpy's global generator
    theirs = peer.get_ece_em(probs, labels, debias=True)
    found = parity.debiased_l1(labels, probs, rng=0)
    # Each is a mean of 1,000 draws whose spread is below 0.01.
    assert found == pytest.approx(theirs, abs=0.001)
    assert abs(peer.get_ece_em(probs, labels) - found) > 0.001


def test_bins_differ_where_rows_do_not_divide_evenly():
    # Six rows in four bins: its parts are 2, 2, 1, 1, the rank split gives 2, 1, 2, 1. Single
    # rows add nothing, so the second pair is (0.5, 0.7) there and (0.7, 0.8) here.
    scores, events = np.array([0.1, 0.2, 0.5, 0.7, 0.8, 0.9]), np.array([0, 0, 1, 1, 1, 0])
    theirs = peer.lower_bound_scaling_ce(scores, events, num_bins=4)
    assert theirs == pytest.approx(np.sqrt((0.15**2 + 0.40**2) / 3))
    assert ece_debiased(events, scores, n_bins=4) == pytest.approx(np.sqrt((0.15**2 + 0.25**2) / 3))
    assert parity.debiased_l2(events, scores, bins=4) == pytest.approx(theirs)


def test_its_front_door_switches_to_one_bin_per_value_on_tied_scores_and_ours_does_not():
    labels, probs = drawn("tied", 1500, 9)
    front = peer.get_calibration_error(probs, labels)
    assert front == pytest.approx(peer.get_binning_ce(probs, labels), abs=EXACT)
    assert abs(front - debiased(labels, probs)) > 1e-4
    assert ece_debiased(labels, probs) == pytest.approx(debiased(labels, probs), abs=EXACT)


@pytest.mark.parametrize("name", NO_TIES)
def test_risk_against_coverage_is_one_less_its_area_under_accuracy_against_coverage(name):
    labels, probs = drawn(name, 1500, 10)
    columns = probs if probs.ndim == 2 else np.column_stack([1.0 - probs, probs])
    right = columns.argmax(axis=1) == labels
    area, _ = peer_selective_stats(columns.max(axis=1), right)
    assert aurc(labels, probs) == pytest.approx(1.0 - area, abs=EXACT)
