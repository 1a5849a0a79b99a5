"""netcal: equal-width ECE and MCE agree; what differs is stated and shown."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netcal.metrics import ECE, MCE
from tests.parity.peer_rows import EVERY, drawn

from calibrant.errors import InputError
from calibrant.metrics import ece, mce

# Tied scores lie on multiples of 0.05; with 4 and 16 bins both sides have the same edges.
BINS = {name: (4, 16) if name == "tied" else (7, 10, 15) for name in EVERY}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", EVERY)
def test_ece_and_mce_agree_in_double_precision(name, seed):
    labels, probs = drawn(name, 1777, seed)
    for bins in BINS[name]:
        assert ece(labels, probs, n_bins=bins) == pytest.approx(
            ECE(bins).measure(probs, labels), abs=1e-9
        )
        assert mce(labels, probs, n_bins=bins) == pytest.approx(
            MCE(bins).measure(probs, labels), abs=1e-9
        )


@pytest.mark.parametrize("name", EVERY)
def test_ece_and_mce_agree_in_single_precision_up_to_netcals_clipping(name):
    # netcal moves scores into [eps, 1 - eps]; eps of float32 is 1.2e-7.
    labels, probs = drawn(name, 1777, 3, np.float32)
    for bins in BINS[name]:
        assert ece(labels, probs, n_bins=bins) == pytest.approx(
            ECE(bins).measure(probs, labels), abs=1.3e-7
        )
        assert mce(labels, probs, n_bins=bins) == pytest.approx(
            MCE(bins).measure(probs, labels), abs=1.3e-7
        )


@given(
    rows=st.lists(st.tuples(st.integers(0, 64), st.booleans()), min_size=1, max_size=40),
    bins=st.sampled_from([1, 2, 8, 32]),
)
@settings(max_examples=60, deadline=None)
def test_scores_on_edges_that_floats_hold_exactly_fall_into_the_same_bin(rows, bins):
    scores = np.array([score / 64 for score, _ in rows])
    events = np.array([int(event) for _, event in rows])
    assert ece(events, scores, n_bins=bins) == pytest.approx(
        ECE(bins).measure(scores, events), abs=1e-9
    )
    assert mce(events, scores, n_bins=bins) == pytest.approx(
        MCE(bins).measure(scores, events), abs=1e-9
    )


@pytest.mark.parametrize("bins", [5, 10, 15])
@pytest.mark.parametrize("name", ["binary", "multiclass", "long_tailed"])
def test_equal_mass_agrees_without_ties_where_the_rows_divide_evenly(name, bins):
    labels, probs = drawn(name, 1500, 4)
    assert ece(labels, probs, n_bins=bins, scheme="mass") == pytest.approx(
        ECE(bins, equal_intervals=False).measure(probs, labels), abs=1e-9
    )


def test_tied_scores_at_a_quantile_go_to_the_bin_above_there_and_below_here():
    # Six rows, two bins: the four rows at 0.5 hold the median and cannot be split.
    scores = np.array([0.2, 0.5, 0.5, 0.5, 0.5, 0.9])
    events = np.array([1, 0, 1, 1, 1, 0])
    theirs = ECE(2, equal_intervals=False).measure(scores, events)
    assert theirs == pytest.approx((0.8 + abs(3 - 2.9)) / 6)  # 0.2 alone
    assert ece(events, scores, n_bins=2, scheme="mass") == pytest.approx((1.8 + 0.9) / 6)


def test_equal_mass_differs_where_the_rows_do_not_divide_evenly():
    # Seven rows, three bins: netcal cuts after 2 and 4 rows, the rank split after 3 and 5.
    scores = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    events = np.array([0, 0, 1, 1, 0, 0, 1])
    theirs = ECE(3, equal_intervals=False).measure(scores, events)
    assert theirs == pytest.approx((0.3 + 1.3 + 0.8) / 7)
    assert ece(events, scores, n_bins=3, scheme="mass") == pytest.approx((0.4 + 0.1 + 0.3) / 7)


def test_netcal_gives_up_on_equal_mass_bins_when_half_of_the_scores_are_tied():
    labels, probs = drawn("saturated", 1500, 4)
    with pytest.raises(ValueError, match="smallest edge difference"):
        ECE(10, equal_intervals=False).measure(probs, labels)
    assert 0.1 < ece(labels, probs, n_bins=10, scheme="mass") < 0.5


def test_netcals_edges_are_off_by_a_rounding_error_and_move_a_score_of_three_tenths():
    # Its third of ten edges is 0.30000000000000004, so 0.3 joins 0.25 in the bin below.
    scores, events = np.array([0.25, 0.3]), np.array([1, 0])
    assert ECE(10).measure(scores, events) == pytest.approx(abs(0.5 - 0.275))
    assert ece(events, scores, n_bins=10) == pytest.approx((0.75 + 0.3) / 2)


def test_netcal_turns_nan_into_a_number_where_calibrant_refuses():
    scores, events = np.array([0.2, np.nan, 0.9, 0.7]), np.array([0, 1, 1, 0])
    # The row is left out of the bins: (0.2 + 0.1 + 0.7) / 3.
    assert ECE(10).measure(scores, events) == pytest.approx(1 / 3)
    with pytest.raises(InputError, match="row 1"):
        ece(events, scores, n_bins=10)


def test_netcal_clips_logits_where_calibrant_refuses():
    logits, events = np.array([2.0, -3.0, 4.0]), np.array([0, 1, 1])
    assert ECE(10).measure(logits, events) == pytest.approx(2 / 3)
    with pytest.raises(InputError, match="logits"):
        ece(events, logits, n_bins=10)


def test_netcal_refuses_three_classes_of_which_two_occur():
    probs = np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2], [0.1, 0.7, 0.2]])
    labels = np.array([0, 1, 1])
    with pytest.raises(RuntimeError, match="binary"):
        ECE(10).measure(probs, labels)
    # Confidences 0.5, 0.6, 0.7; only the last is right.
    assert ece(labels, probs, n_bins=10) == pytest.approx((0.5 + 0.6 + 0.3) / 3)
