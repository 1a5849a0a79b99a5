"""Saving and loading operating points."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.thresholds import (
    Band,
    Cost,
    OperatingPoint,
    OperatingPoints,
    accuracy,
    coverage,
    npv,
    precision,
    select,
    select_band,
    select_each,
)
from calibrant.thresholds.labelled_rows import LabelledRows


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    labels = (rng.random(2000) < 0.3).astype(int)
    return labels, 1 / (1 + np.exp(-rng.normal(3 * labels - 2, 1)))


def through_json(saved):
    return json.loads(json.dumps(saved, allow_nan=False))


@pytest.mark.parametrize(
    "options",
    [
        {"hold": precision >= 0.85},
        {"hold": precision >= 0.25},  # every row is acted on: log-odds minus infinity
        {"hold": precision >= 0.85, "confidence": None},
        {"minimise": Cost(1, 5)},
        {"minimise": Cost(1, 5), "confidence": None},
        {"hold": [precision >= 0.7, Cost(1, 5) <= 0.9]},
    ],
)
def test_a_point_survives_strict_json(rows, options):
    point = select(*rows, **options)
    loaded = OperatingPoint.from_dict(through_json(point.to_dict()))
    assert loaded == point
    assert np.array_equal(loaded.act(rows[1]), point.act(rows[1]))
    assert str(loaded) == str(point)


def test_points_and_bands_survive_strict_json(rows):
    labels, probs = rows
    each = select_each(labels, np.column_stack([1 - probs, probs]), hold=precision >= 0.97)
    assert OperatingPoints.from_dict(through_json(each.to_dict())).to_dict() == each.to_dict()
    band = select_band(labels, probs, act=precision >= 0.9, clear=npv >= 0.95)
    assert Band.from_dict(through_json(band.to_dict())) == band


def test_a_newer_format_and_a_foreign_file_are_refused(rows):
    saved = select(*rows, hold=precision >= 0.85).to_dict()
    with pytest.raises(InputError, match="update calibrant"):
        OperatingPoint.from_dict({**saved, "format": 2})
    for foreign in ({}, {"method": "temperature"}, [], None):
        with refuses(InputError, "not a saved operating", "point"):
            OperatingPoint.from_dict(foreign)


def test_damage_anywhere_is_refused_in_one_sentence(rows):
    saved = select(*rows, hold=precision >= 0.85).to_dict()
    needed = set(saved) - {
        "format",
        "reached",
        "costs",
        "interval_confidence",
        "both_kinds",
        "condition",
    }
    for name in needed - {"threshold"}:
        broken = {key: value for key, value in saved.items() if key != name}
        with pytest.raises(InputError, match="damaged"):
            OperatingPoint.from_dict(broken)
    for name, value in (
        ("threshold", 1.5), ("threshold", "x"), ("on", "scores"), ("classes", [1]), ("classes", 3),
        ("classes", [1, 1]), ("class", "x"), ("confidence", 2), ("hold", ["precision"]),
        ("hold", ["no: precision>=0.5"]), ("rates", []), ("n", None), ("logit", float("nan")),
        ("rates", {"precision": {"value": 0.5}}),
    ):  # fmt: skip
        broken = copy.deepcopy(saved)
        broken[name] = value
        with pytest.raises(InputError):
            OperatingPoint.from_dict(broken)


@pytest.mark.parametrize("shape", [(5, 3), (5,)])
def test_scores_of_other_classes_are_refused(rows, shape):
    labels, probs = rows
    three = np.column_stack([probs, (1 - probs) / 2, (1 - probs) / 2])
    point = select(labels, three, hold=precision >= 0.3, positive=0) if shape == (5,) else None
    point = point or select(labels, probs, hold=precision >= 0.85)
    with refuses(InputError, "classes, but the scores have shape"):
        point.act(np.full(shape, 1 / 3))


def test_whoever_acts_on_every_row_has_nothing_to_estimate(rows):
    point = select(*rows, hold=precision >= 0.25, maximise=coverage)
    assert point.act(rows[1]).all()
    settled = [name for name in point.rates if point.settles(name)]
    assert settled == ["recall", "specificity", "fpr", "coverage", "abstention"]
    assert "recall: 1.0000 by definition" in str(point)
    assert "precision: 0." in str(point)
    assert "coverage: 1.0000 [" not in str(point)
    saved = point.to_dict()["rates"]["recall"]
    assert saved["low"] < saved["high"]  # in files it stays as it was measured


def test_a_threshold_below_all_rows_seen_settles_nothing(rows):
    labels, probs = rows
    point = select(labels, probs, hold=precision >= 0.85)
    assert not any(point.settles(name) for name in point.rates)
    lowest = LabelledRows(probs_to_logits(probs), labels, (0, 1)).measure_threshold(1, prob=1e-9)
    assert lowest["recall"].value == 1
    assert not lowest.settles("recall")


def test_rows_that_are_withheld_are_not_acted_on_by_definition(rows):
    labels, probs = rows
    withheld = np.arange(len(labels)) == int(np.flatnonzero(labels == 0)[0])
    every = LabelledRows(probs_to_logits(probs), labels, (0, 1), None, withheld)
    point = every.measure_threshold(1, prob=0.0)
    assert point["recall"].value == 1
    assert not point.settles("recall")
    assert not point.settles("coverage")


def probs_to_logits(probs):
    return np.log(probs) - np.log1p(-probs)


@pytest.mark.parametrize("kind", ["probs", "logits"])
@pytest.mark.parametrize("width", [np.float32, np.float64])
def test_decision_scores_decide_as_the_point_does(rows, kind, width):
    labels, probs = rows
    point = select(labels, probs, hold=precision >= 0.85)
    near = np.nextafter(point.threshold, [0.0, 1.0])
    scores = np.concatenate([probs, [point.threshold, *near]]).astype(width)
    given = {kind: scores if kind == "probs" else probs_to_logits(scores).astype(width)}
    found = point.decision_scores(**given)
    assert np.array_equal(found >= point.decision_threshold, point.act(**given))
    assert found == pytest.approx(scores, rel=1e-6)
    assert point.scale == "probability"


def test_decision_scores_of_a_class_and_of_the_predicted_one():
    probs = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    labels = np.repeat([0, 1, 2], 40)
    many = np.eye(3)[labels] * 0.7 + 0.1
    second = select(labels, many, hold=precision >= 0.5, positive=1, confidence=None)
    assert second.decision_scores(probs).tolist() == [0.5, 0.1]
    accepted = select(labels, many, hold=accuracy >= 0.5, confidence=None)
    assert accepted.decision_scores(probs).tolist() == [0.5, 0.8]


def test_scores_that_probabilities_round_are_log_odds(rows):
    labels, probs = rows
    logits = probs_to_logits(probs) * 20
    point = select(labels, logits=logits, hold=precision >= 0.97, confidence=None)
    tight = replace(point, threshold=1.0, logit=50.0, both_kinds=False)
    assert (tight.scale, tight.decision_threshold) == ("log-odds", 50.0)
    found = tight.decision_scores(logits=[49.0, 50.0, 51.0])
    assert found.tolist()[1:] == [50.0, 51.0]
    assert (found >= 50.0).tolist() == tight.act(logits=[49.0, 50.0, 51.0]).tolist()
    with refuses(InputError, "logits"):
        tight.decision_scores([0.5])
