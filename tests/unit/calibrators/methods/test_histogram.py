"""Histogram binning: frequencies by hand, ties, weights, empty bins, saving."""

import json

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.calibrators import Calibrator
from calibrant.calibrators.methods.histogram import HistogramBinning, equal_mass_starts
from calibrant.convert import log_odds_from_logits
from calibrant.errors import InputError
from calibrant.metrics import ece
from calibrant.metrics.binning import mass_bins
from calibrant.testing import WORLDS


def logits_of(name, n, seed):
    draw = WORLDS[name].draw(n, seed)
    probs = np.clip(draw.probs.astype(np.float64), 1e-9, 1 - 1e-9)
    return (np.log(probs) - np.log1p(-probs) if probs.ndim == 1 else np.log(probs)), draw.labels


def test_frequencies_of_two_bins_by_hand():
    logits, labels = [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], [0, 0, 1, 1, 1, 0]
    plain = HistogramBinning(2, pseudo_count=0).fit(logits, labels)
    assert plain.predict_proba([-3.0, -1.0, 1.0, 3.0]) == pytest.approx(
        [1 / 3, 1 / 3, 2 / 3, 2 / 3]
    )
    # Base rate 1/2; two rows of it are added to each bin of three.
    smooth = HistogramBinning(2, pseudo_count=2).fit(logits, labels)
    assert smooth.predict_proba([-3.0, 3.0]) == pytest.approx([2 / 5, 3 / 5])


def test_a_bin_holds_its_lower_edge_and_the_ends_reach_out():
    calibrator = HistogramBinning(2, pseudo_count=0).fit([0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1])
    assert calibrator.maps_[0]["edges"].tolist() == [2.0]
    near = np.nextafter(2.0, 0.0)
    assert calibrator.predict_proba([-1e9, near, 2.0, 1e9]).tolist() == [0.0, 0.0, 1.0, 1.0]


def test_tied_scores_stay_in_one_bin():
    logits = [0.0] * 7 + [1.0, 2.0, 3.0]
    calibrator = HistogramBinning(5, pseudo_count=0).fit(logits, [0] * 6 + [1, 0, 1, 1])
    # 7 of 10 rows share the first score; of five bins those that begin at 7 and 8 rows are left.
    assert calibrator.maps_[0]["edges"].tolist() == [1.0, 2.0]
    assert calibrator.predict_proba([0.0, 1.0, 2.0]) == pytest.approx([1 / 7, 0.0, 1.0])


def test_bins_of_equal_width_and_an_empty_one():
    logits = np.log([1 / 9, 1 / 9, 9.0, 9.0])  # probabilities 0.1 and 0.9; [1/3, 2/3) is empty
    labels = [0, 1, 1, 1]
    plain = HistogramBinning(3, scheme="width", pseudo_count=0).fit(logits, labels)
    assert plain.predict_proba([-2.0, 0.0, 2.0]) == pytest.approx([0.5, 0.5, 1.0])
    middle = HistogramBinning(4, scheme="width", pseudo_count=0).fit(logits, labels)
    assert middle.predict_proba([-0.1, 0.0]) == pytest.approx([3 / 8, 5 / 8])
    smooth = HistogramBinning(3, scheme="width", pseudo_count=1).fit(logits, labels)
    assert smooth.predict_proba([-2.0, 0.0, 2.0]) == pytest.approx([1.75 / 3, 0.75, 2.75 / 3])


def test_edges_of_equal_width_lie_at_whole_shares_of_probability():
    logits, labels = logits_of("binary", 50, 0)
    edges = HistogramBinning(5, scheme="width").fit(logits, labels).maps_[0]["edges"]
    assert 1 / (1 + np.exp(-edges)) == pytest.approx([0.2, 0.4, 0.6, 0.8])


@pytest.mark.parametrize("name", ["binary", "tied", "rare"])
def test_fitted_rows_have_no_calibration_error_left(name):
    logits, labels = logits_of(name, 600, 1)
    probs = HistogramBinning(pseudo_count=0).fit(logits, labels).predict_proba(logits)
    assert probs.mean() == pytest.approx(labels.mean())
    for value in np.unique(probs):
        assert labels[probs == value].mean() == pytest.approx(value)
    assert ece(labels, probs, n_bins=15, scheme="mass") == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("scheme", ["mass", "width"])
@pytest.mark.parametrize("pseudo_count", [0.0, 1.0])
@pytest.mark.parametrize("name", ["binary", "tied", "multiclass"])
def test_a_weight_equals_a_repetition(name, scheme, pseudo_count):
    logits, labels = logits_of(name, 300, 2)
    times = np.random.default_rng(0).integers(0, 4, 300)
    make = HistogramBinning(7, scheme=scheme, pseudo_count=pseudo_count)
    weighted = make.fit(logits, labels, times).predict_proba(logits)
    repeated = make.fit(np.repeat(logits, times, axis=0), np.repeat(labels, times))
    assert weighted == pytest.approx(repeated.predict_proba(logits), abs=1e-12)


def test_the_scale_of_weights_does_not_move_the_bins():
    logits, labels = logits_of("binary", 300, 3)
    plain = HistogramBinning(7, pseudo_count=0).fit(logits, labels)
    scaled = HistogramBinning(7, pseudo_count=0).fit(logits, labels, np.full(300, 0.1))
    assert np.array_equal(plain.maps_[0]["edges"], scaled.maps_[0]["edges"])
    assert plain.maps_[0]["probs"] == pytest.approx(scaled.maps_[0]["probs"], abs=1e-12)


@pytest.mark.parametrize("scheme", ["mass", "width"])
@pytest.mark.parametrize("name", ["binary", "multiclass"])
def test_saved_and_loaded_it_answers_the_same_bits(name, scheme):
    logits, labels = logits_of(name, 200, 4)
    calibrator = HistogramBinning(9, scheme=scheme, pseudo_count=0.5).fit(logits, labels)
    loaded = Calibrator.from_dict(json.loads(json.dumps(calibrator.to_dict(), allow_nan=False)))
    assert isinstance(loaded, HistogramBinning)
    assert (loaded.n_bins, loaded.scheme, loaded.pseudo_count) == (9, scheme, 0.5)
    assert np.array_equal(loaded.predict_log_proba(logits), calibrator.predict_log_proba(logits))


def test_more_classes_are_normalised_against_the_rest():
    logits, labels = logits_of("multiclass", 500, 5)
    found = HistogramBinning(6).fit(logits, labels).predict_proba(logits)
    odds = log_odds_from_logits(logits)
    single = [
        HistogramBinning(6).fit(odds[:, k], labels == k).predict_proba(odds[:, k]) for k in range(5)
    ]
    columns = np.column_stack(single)
    assert found == pytest.approx(columns / columns.sum(axis=1, keepdims=True), abs=1e-12)


@pytest.mark.parametrize("scheme", ["mass", "width"])
def test_few_constant_and_separated_rows(scheme):
    few = HistogramBinning(15, scheme=scheme).fit([-1.0, 1.0, 2.0], [0, 1, 1])
    assert ((few.predict_proba([-1.0, 1.0]) > 0) & (few.predict_proba([-1.0, 1.0]) < 1)).all()
    constant = HistogramBinning(scheme=scheme).fit(np.zeros(8), [0, 0, 0, 0, 0, 0, 1, 1])
    assert constant.predict_proba([0.0]) == pytest.approx([0.25])
    separated = HistogramBinning(2, scheme=scheme).fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    assert separated.predict_proba([-2.0, 2.0]) == pytest.approx([1 / 6, 5 / 6])


def test_textbook_extremes_are_exactly_0_and_1():
    calibrator = HistogramBinning(2, pseudo_count=0).fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    assert calibrator.predict_proba([-2.0, 2.0]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"n_bins": 0}, "n_bins"),
        ({"n_bins": 2.5}, "n_bins"),
        ({"scheme": "size"}, "scheme"),
        ({"pseudo_count": -1.0}, "pseudo_count"),
        ({"pseudo_count": np.nan}, "pseudo_count"),
        ({"pseudo_count": np.inf}, "pseudo_count"),
    ],
)
def test_impossible_options_are_refused(options, word):
    with pytest.raises(InputError, match=word):
        HistogramBinning(**options).fit([0.0, 1.0], [0, 1])


def test_a_class_that_never_occurs_is_refused():
    with refuses(InputError, "rows of every class"):
        HistogramBinning().fit([0.0, 1.0], [1, 1])


@pytest.mark.parametrize(
    "change",
    [{"edges": [2.0, 1.0]}, {"edges": []}, {"probs": [0.5]}, {"probs": [-0.1, 0.5, 0.5]}],
)
def test_a_damaged_file_is_refused(change):
    saved = HistogramBinning(3).fit([0.0, 1.0, 2.0], [0, 1, 1]).to_dict()
    saved["params"]["maps"][0].update(change)
    with pytest.raises(InputError, match="damaged"):
        Calibrator.from_dict(saved)


@pytest.mark.parametrize("n_bins", [1, 2, 7, 40, 300])
def test_bins_begin_where_the_house_rule_says(n_bins):
    rng = np.random.default_rng(n_bins)
    for mass in (np.ones(100), rng.integers(1, 30, 100) * 1.0, rng.random(100) + 0.01):
        below = np.cumsum(mass) - mass
        bins = mass_bins(below, mass.sum(), n_bins)
        expected = np.flatnonzero(np.append(True, bins[1:] != bins[:-1]))
        assert equal_mass_starts(np.cumsum(mass), n_bins).tolist() == expected.tolist()
