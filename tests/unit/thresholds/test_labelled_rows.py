"""Labelled rows with logits: certified, measured by hand, with rows withheld and of no class."""

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.errors import InputError, TargetUnreachable
from calibrant.thresholds import accuracy, npv, precision, recall, select
from calibrant.thresholds.labelled_rows import LabelledRows

NAMES = ("a", "b", "c")


def world(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (n, 3))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = np.minimum((rng.random((n, 1)) > probs.cumsum(axis=1)).sum(axis=1), 2)
    return logits, codes


@pytest.mark.parametrize(("of", "hold"), [("b", precision >= 0.8), (None, accuracy >= 0.7)])
def test_it_chooses_what_select_chooses(of, hold):
    logits, codes = world()
    found = LabelledRows(logits, codes, NAMES).select_point(of, (hold,), confidence=0.9)
    labels = np.array(NAMES)[codes]
    same = select(labels, logits=logits, hold=hold, confidence=0.9, classes=NAMES, positive=of)
    assert found == same


def test_a_smaller_share_of_the_error_asks_for_more():
    logits, codes = world()
    rows = LabelledRows(logits, codes, NAMES)
    whole, part = (
        rows.select_point("b", (precision >= 0.8,), confidence=0.95, share=share)
        for share in (1.0, 0.01)
    )
    assert whole.threshold < part.threshold
    assert whole.confidence == part.confidence == 0.95


def test_classes_that_are_numbers_keep_their_names():
    logits, codes = world()
    found = LabelledRows(logits, codes, (10, 20, 30)).select_point(
        20, (precision >= 0.8,), confidence=0.9
    )
    assert (found.of, found.classes) == (20, (10, 20, 30))


def test_what_cannot_be_had_is_told_and_not_raised():
    logits, codes = world(200)
    found = LabelledRows(logits, codes, NAMES).select_point(
        "b", (precision >= 0.999,), confidence=0.95
    )
    assert isinstance(found, TargetUnreachable)
    assert found.of == "b"


def test_of_rows_that_are_cleared_there_are_as_many_as_can_be():
    logits, codes = world()
    rows = LabelledRows(logits, codes, NAMES)
    usual, clearing = (
        rows.select_point("b", (npv >= 0.9, recall >= 0.5), confidence=0.95, clears=clears)
        for clears in (False, True)
    )
    assert clearing.objective == "minimise coverage"
    assert clearing["coverage"].value <= usual["coverage"].value


def test_a_threshold_set_by_hand_is_measured_and_promises_nothing():
    # By hand: log-odds of class b are 2, 1, 0 and -1; from 0.5 on the first three are acted on.
    rows = LabelledRows(np.array([2.0, 1.0, 0.0, -1.0]), np.array([1, 0, 1, 1]), ("a", "b"))
    point = rows.measure_threshold("b", prob=0.5)
    assert (point.threshold, point.logit) == (0.5, 0.0)
    assert point["precision"].value == pytest.approx(2 / 3)
    assert point["recall"].value == pytest.approx(2 / 3)
    assert point["coverage"].value == 0.75
    assert (point.guarantee, point.confidence, point.hold) == (None, None, ())
    assert point.act(logits=rows.logits).tolist() == [True, True, True, False]


def test_by_hand_rows_withheld_are_not_acted_on_and_rows_of_no_class_are_wrong():
    rows = LabelledRows(
        np.array([3.0, 2.0, 1.0, 0.0]), np.array([1, -1, 1, 0]), ("a", "b"),
        withheld=np.array([True, False, False, False]),
    )  # fmt: skip
    for point in (rows.measure_threshold("b", prob=0.0), rows.measure_threshold("b", logit=-50.0)):
        assert point["coverage"].value == 0.75
        assert point["precision"].value == pytest.approx(1 / 3)


def test_by_hand_log_odds_tell_rows_apart_whose_probabilities_are_1():
    rows = LabelledRows(np.array([60.0, 50.0, 40.0]), np.array([1, 1, 0]), ("a", "b"))
    point = rows.measure_threshold("b", logit=45.0)
    assert point.threshold == 1.0
    assert not point.both_kinds
    assert point["precision"].value == 1.0
    assert point.act(logits=rows.logits).tolist() == [True, True, False]


def test_by_hand_a_threshold_of_1_acts_on_nothing():
    rows = LabelledRows(np.array([2.0, 1.0]), np.array([1, 0]), ("a", "b"))
    point = rows.measure_threshold("b", prob=1.0)
    assert point["coverage"].value == 0.0
    assert point["precision"].value is None
    assert type(point).from_dict(point.to_dict()) == point


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, ("prob or logit",)),
        ({"prob": 0.5, "logit": 0.0}, ("prob or logit",)),
        ({"prob": 1.5}, ("from 0 to 1",)),
        ({"logit": float("nan")}, ("must be a number",)),
    ],
)
def test_by_hand_what_is_no_threshold_is_refused(given, told):
    rows = LabelledRows(np.array([2.0, 1.0]), np.array([1, 0]), ("a", "b"))
    with refuses(InputError, *told):
        rows.measure_threshold("b", **given)


def test_example_of_labelledrows_measure_threshold():
    rows = LabelledRows(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0, 1, 0, 1]), (0, 1))
    point = rows.measure_threshold(1, prob=0.5)
    assert (point["precision"].value, point["recall"].value, point.guarantee, point.why) == (
        0.5,
        0.5,
        None,
        "it was set by hand",
    )
