"""The most that a row could weigh: every promise made with weights says what it rests on."""

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.reports.threshold.page import threshold_html
from calibrant.reports.threshold.text import render_threshold
from calibrant.testing import THRESHOLD_WORLDS, WORLDS
from calibrant.thresholds import (
    OperatingPoint,
    check_transfer,
    npv,
    precision,
    select,
    select_band,
    select_each,
)
from calibrant.thresholds.band import Band
from calibrant.thresholds.labelled_rows import LabelledRows
from calibrant.thresholds.proof.largest_weight import (
    LargestWeight,
    check_largest_weight,
    condition_clause,
    name_weight_setting,
)

SEEN = "if no row could weigh more than 3, the largest seen."
KNOWN = "if no row could weigh more than 4."


@pytest.fixture(scope="module")
def rows():
    draw = THRESHOLD_WORLDS["bimodal"].draw(3000, 0)
    return draw.labels, draw.probs


@pytest.fixture(scope="module")
def weights():
    return np.where(np.arange(3000) % 2, 1.0, 3.0)


@pytest.mark.parametrize(("limit", "said"), [(None, SEEN), (4, KNOWN)])
def test_a_promise_made_with_weights_says_under_which_condition(rows, weights, limit, said):
    heavy = {"weights": weights, "largest_weight": limit}
    point = select(*rows, hold=precision >= 0.7, **heavy)
    assert point.guarantee.endswith(f"drawn like these 3,000, {said}")
    assert f"if {point.condition}." == said
    assert bool(point.notes) == (limit is None)
    band = select_band(*rows, act=precision >= 0.7, clear=npv >= 0.6, **heavy)
    assert band.guarantee.endswith(said)
    assert Band.from_dict(band.to_dict()).guarantee == band.guarantee


def test_rows_that_all_weigh_alike_do_not_tell_of_heavier_ones(rows):
    point = select(*rows, hold=precision >= 0.7, weights=np.full(3000, 3.0))
    assert not point.weighted
    assert point.guarantee.endswith(SEEN)
    bare = select(*rows, hold=precision >= 0.7)
    assert point.threshold == bare.threshold
    assert bare.condition is None
    assert bare.guarantee.endswith("drawn like these 3,000.")


def test_all_promises_of_several_classes_are_headed_by_the_condition():
    draw = WORLDS["multiclass"].draw(4000, 0)
    weights = np.where(np.arange(4000) % 2, 1.0, 3.0)
    hold = {0: precision >= 0.6, 1: precision >= 0.6}
    found = select_each(draw.labels, draw.probs, hold=hold, weights=weights)
    assert len(found.points) == 2
    text = " ".join(render_threshold(found).split())
    assert f"hold together with 95 % confidence, on new rows drawn like these 4,000, {SEEN}" in text
    page = threshold_html(
        found, labels=draw.labels, scores=draw.probs, on="probs", classes=tuple(range(5)),
        weights=weights,
    )  # fmt: skip
    assert f"on new rows drawn like these 4,000, {SEEN}" in page


def test_what_promises_nothing_needs_no_condition(rows, weights):
    point = select(*rows, hold=precision >= 0.7, weights=weights, confidence=None)
    assert point.condition is None
    assert not point.notes
    by_hand = LabelledRows(rows[1], rows[0], (0, 1), weights).measure_threshold(1, prob=0.5)
    assert not by_hand.notes


def test_a_check_says_under_which_condition_it_is_right(rows, weights):
    point = select(*rows, hold=precision >= 0.7)
    found = check_transfer(point, *rows, weights=weights)
    assert "(confidence 95 %, if no row could weigh more than 3, the largest seen): " in found.text
    assert found.to_dict()["condition"] == found.condition
    known = check_transfer(point, *rows, weights=weights, largest_weight=4)
    assert "(confidence 95 %, if no row could weigh more than 4): " in known.text
    assert "(confidence 95 %): " in check_transfer(point, *rows).text
    for wrong in (0, True, "4"):
        with refuses(InputError, "largest_weight", "finite", "no smaller"):
            check_transfer(point, *rows, weights=weights, largest_weight=wrong)


def test_points_that_were_saved_before_load_as_they_were(rows, weights):
    point = select(*rows, hold=precision >= 0.7, weights=weights)
    saved = point.to_dict()
    assert OperatingPoint.from_dict(saved) == point
    saved.pop("condition")
    old = OperatingPoint.from_dict(saved)
    assert (old.condition, old.guarantee) == (None, point.guarantee)


def test_labelled_rows_know_the_limit_of_their_design(rows, weights):
    logits = np.log(rows[1] / (1 - rows[1]))
    known = LabelledRows(logits, rows[0], (0, 1), weights, largest_weight=4.0)
    found = known.select_point(1, (precision >= 0.7,), confidence=0.95)
    assert found.guarantee.endswith(KNOWN)
    apart = select(rows[0], logits=logits, hold=precision >= 0.7, weights=weights, largest_weight=4)
    assert found.threshold == apart.threshold


@pytest.mark.parametrize("weight", [np.array([1.0, 3.0] * 1500), np.full(3000, 3.0)])
def test_notes_call_the_limit_as_its_user_does(rows, weight):
    point = select(*rows, hold=precision >= 0.7, weights=weight)
    assert point.notes[0].endswith("; give largest_weight if a row could weigh more.")
    assert "give --largest-weight if" in name_weight_setting(point, "--largest-weight").notes[0]
    bare = name_weight_setting(point, None).notes[0]
    assert bare == point.notes[0].partition(";")[0] + "."


def test_a_limit_is_checked_under_the_name_it_was_given():
    check_largest_weight(None, None)
    check_largest_weight(3, np.array([1.0, 3.0]))
    with refuses(InputError, "--largest-weight", "given without weights"):
        check_largest_weight(3, None, name="--largest-weight")
    for wrong in (2, np.inf, np.nan, True, "3"):
        with refuses(InputError, "limit must be finite", "row weighs 3"):
            check_largest_weight(wrong, np.array([1.0, 3.0]), name="limit")
    assert LargestWeight(20.0, from_sample=True).note.startswith(
        "The largest weight among these rows, 20"
    )


def test_example_of_condition_clause():
    assert (
        f"It holds{condition_clause('no row could weigh more than 20')}."
    ) == "It holds, if no row could weigh more than 20."
