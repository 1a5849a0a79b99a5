"""BinHistory: bins by hand, ties, empty bins, its way through JSON, and bad input."""

import json
from dataclasses import fields

import numpy as np
import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.reports.training_figures import a_history

from calibrant.errors import InputError
from calibrant.metrics import ece
from calibrant.reports import BinHistory

NAMES = [field.name for field in fields(BinHistory)]


def one_epoch(**changes):
    rows = {
        "confidence": [0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        "right": [0, 1, 1, 0, 1, 1],
        "true": [0.3, 0.65, 0.75, 0.95],
        "top": [0.5, 0.65, 0.75, 0.95],
        "train_right": [0, 1, 1, 1],
        "epoch": 4,
        "n_bins": 3,
    }
    return BinHistory.from_rows(**{**rows, **changes})


def test_steer_rows_by_hand():
    found = one_epoch()
    assert found.epoch.tolist() == [4]
    np.testing.assert_allclose(found.edges, [[0.6, 0.8]])
    assert found.count.tolist() == [[2, 2, 2]]
    np.testing.assert_allclose(found.confidence, [[0.45, 0.65, 0.85]])
    np.testing.assert_allclose(found.accuracy, [[0.5, 0.5, 1.0]])
    np.testing.assert_allclose(found.error, [[-0.05, 0.15, -0.15]])
    np.testing.assert_allclose(found.ece, [(0.05 + 0.15 + 0.15) / 3])


def test_train_rows_by_hand():
    found = one_epoch()
    assert found.train_count.tolist() == [[1, 2, 1]]
    np.testing.assert_allclose(found.train_confidence, [[0.3, 0.7, 0.95]])
    np.testing.assert_allclose(found.train_top, [[0.5, 0.7, 0.95]])
    np.testing.assert_allclose(found.train_accuracy, [0.75])
    # Bins of their own: 3 r // 4 for ranks 0, 1, 2, 3.
    np.testing.assert_allclose(found.own_edges, [[0.75, 0.95]])
    assert found.own_count.tolist() == [[2, 1, 1]]
    np.testing.assert_allclose(found.own_confidence, [[0.475, 0.75, 0.95]])
    np.testing.assert_allclose(found.own_top, [[0.575, 0.75, 0.95]])


def test_a_bin_holds_its_lower_edge():
    found = one_epoch(true=[0.6, 0.8], top=[0.6, 0.8], train_right=[1, 1])
    assert found.train_count.tolist() == [[0, 1, 1]]


def test_equal_confidences_share_a_bin_and_empty_bins_keep_their_number():
    tied = [0.2, 0.4, 0.6] + 7 * [1.0]
    found = BinHistory.from_rows(
        tied, np.ones(10), true=[1.0], top=[1.0], train_right=[1], n_bins=5
    )
    assert found.count.tolist() == [[2, 8, 0, 0, 0]]
    np.testing.assert_array_equal(found.edges, [[0.6, np.nan, np.nan, np.nan]])
    assert np.isnan(found.confidence[0, 2:]).all()
    # A train row that is as sure as it can be belongs where the surest steer rows are.
    assert found.train_count.tolist() == [[0, 1, 0, 0, 0]]


def test_ties_in_the_middle_leave_a_gap_below_the_surest():
    found = BinHistory.from_rows([0.1, 0.2] + 6 * [0.5] + [0.8, 0.9], np.ones(10), n_bins=5)
    assert found.count.tolist() == [[2, 6, 0, 0, 2]]
    np.testing.assert_array_equal(found.edges, [[0.5, 0.8, 0.8, 0.8]])


@pytest.mark.parametrize("digits", [16, 2, 1])
def test_the_calibration_error_is_that_of_metrics(digits):
    rng = np.random.default_rng(digits)
    probs = rng.dirichlet(np.ones(4), size=301)
    probs = probs.round(digits)
    probs[:, 3] = 1 - probs[:, :3].sum(1)
    probs = np.abs(probs)
    probs /= probs.sum(1, keepdims=True)
    labels = rng.integers(0, 4, 301)
    found = BinHistory.from_rows(probs.max(1), probs.argmax(1) == labels)
    expected = ece(labels, probs, scheme="mass", n_bins=15, target="top-label", classes=range(4))
    assert found.ece[0] == pytest.approx(expected, abs=1e-12)


def test_no_row_is_lost_and_means_lie_between_edges():
    history = a_history()
    assert (history.count.sum(1) == 200).all()
    assert (history.train_count.sum(1) == 200).all()
    assert (history.own_count.sum(1) == 200).all()
    assert (history.confidence[:, :-1] < history.edges).all()
    assert (history.confidence[:, 1:] >= history.edges).all()


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(0)
    sure, right = rng.random(100).round(2), rng.random(100) < 0.5
    order = rng.permutation(100)
    one = BinHistory.from_rows(sure, right, true=sure, top=sure, train_right=right)
    other = BinHistory.from_rows(
        sure[order], right[order], true=sure[order], top=sure[order], train_right=right[order]
    )
    for name in NAMES:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12)


def test_without_rows_there_are_no_figures():
    found = BinHistory.from_rows([], [], n_bins=2)
    assert np.isnan(found.ece[0])
    assert np.isnan(found.train_accuracy[0])
    assert found.count.tolist() == [[0, 0]]


def test_epochs_can_be_joined_and_cut():
    history = a_history(epochs=6)
    first, rest = history.before(4), a_history(epochs=6)
    assert first.epoch.tolist() == [0, 1, 2, 3]
    assert first.then(rest).epoch.tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 4, 5]
    with refuses(InputError, "later", "5 bins"):
        history.then(a_history(n_bins=4))


def test_it_survives_strict_json():
    history = a_history(epochs=2).then(
        BinHistory.from_rows(7 * [1.0], np.ones(7), epoch=2, n_bins=5)
    )
    text = json.dumps(history.to_dict(), allow_nan=False)
    again = BinHistory.from_dict(json.loads(text))
    for name in NAMES:
        kept, back = getattr(history, name), getattr(again, name)
        np.testing.assert_array_equal(kept, back)
        assert kept.dtype == back.dtype
        assert kept.shape == back.shape


@pytest.mark.parametrize("n_bins", [1, 15])
def test_an_empty_history_survives_json_too(n_bins):
    empty = BinHistory.empty(n_bins)
    again = BinHistory.from_dict(json.loads(json.dumps(empty.to_dict())))
    assert again.n_bins == n_bins
    assert len(again) == 0
    assert again.edges.shape == (0, n_bins - 1)


def test_it_prints_itself():
    assert_mentions(BinHistory.empty(3), "3 bins", "no epoch")
    assert_mentions(a_history(epochs=2), "5 bins", "2 epochs", "calibration error 0.")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"right": [1, 0]}, ("right", "6 rows", "got shape (2,)")),
        ({"confidence": [0.5] * 5 + [np.nan]}, ("confidence", "nan in row 5")),
        ({"top": [0.5, 0.65, 1.75, 0.95]}, ("top", "1.75 in row 2")),
        ({"n_bins": 0}, ("n_bins", "whole number", "at least 1", "got 0")),
    ],
)
def test_bad_rows_are_refused(changes, words):
    with refuses(InputError, *words):
        one_epoch(**changes)


def test_a_saved_history_must_be_whole():
    saved = a_history(epochs=2).to_dict()
    with pytest.raises(InputError, match="missing: accuracy"):
        BinHistory.from_dict({k: v for k, v in saved.items() if k != "accuracy"})
    with refuses(InputError, "ece", "shape (2,)"):
        BinHistory.from_dict({**saved, "ece": [0.1]})
    with refuses(InputError, "count", "a table"):
        BinHistory.from_dict({**saved, "count": "many"})
