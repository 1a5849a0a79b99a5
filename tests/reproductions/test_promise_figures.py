"""Figures of the return-reason paper, where the truth is known."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from reproductions.corpus import fresh_messages, return_reasons
from reproductions.experiment import experiment_named
from reproductions.fitting import Fitted
from reproductions.golden_sets import Population, golden_sets
from reproductions.parts import Part, Parts
from reproductions.promise_figures import columns_of, paper_columns, promise, true_ce
from reproductions.reason_curves import threshold_curves
from sklearn.metrics import precision_recall_fscore_support

from calibrant.errors import InputError
from calibrant.study.promises import parse_promises

CLASSES = ("others", "wanted")
READING = {"binary": True, "logs": 900, "test": 2000, "fresh": 20_000}


def world(n, seed, rate=None):
    """Draw rows whose log-odds are the truth, or say nothing: precision is known everywhere."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(0.0, 3.0, n)
    probs = 1 / (1 + np.exp(-odds)) if rate is None else np.full(n, rate)
    labels = (rng.random(n) < probs).astype(np.int64)
    rows = Part(["row"] * n, labels, np.column_stack([1 - probs, probs]))
    return rows, np.column_stack([np.zeros(n), odds])


class Oracle:
    """Knows the posterior of the fresh messages, and is `factor` times as sure."""

    def __init__(self, factor):
        self.factor = factor

    def logits(self, rows):
        return self.factor * np.log(rows.posterior)

    def predict_logits(self, texts):
        rows, known = drawn()
        logits = self.logits(rows)
        return logits[[known[text] for text in texts]]


@cache
def drawn():
    """Draw what the fresh messages are taken from, with the place of each."""
    rows = fresh_messages({**READING, "fresh": READING["fresh"] + 1000}, ())
    return rows, {text: i for i, text in enumerate(rows.inputs)}


def run_of(factor, *, reading=READING, data="return_reasons", parts=None, hold=()):
    parts = return_reasons(READING) if parts is None else parts
    model = Oracle(factor)
    experiment = SimpleNamespace(data=data, reading={**reading, "hold": hold})
    logits = {name: model.logits(getattr(parts, name)) for name in ("calib", "test")}
    method = experiment_named("newsgroups-cnn").methods[0]
    return Fitted(experiment, method, 0, parts, model, logits, 0.0)


@pytest.fixture(scope="module")
def sure():
    """A model that knows the truth but is three times too sure of it."""
    return run_of(3.0)


# The paper's columns


def test_columns_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet([1, 1, 1], 500), rng.integers(0, 3, 500)
    found = columns_of(labels, probs)
    said = precision_recall_fscore_support(labels, probs.argmax(axis=1), average="macro")
    assert [found[name] for name in ("precision", "recall", "f1")] == pytest.approx(said[:3])


def test_a_worst_bin_of_one_row_is_told():
    probs = np.array([[0.95, 0.05]] * 20 + [[0.45, 0.55]])
    found = columns_of(np.array([0] * 21), probs)
    assert found["mce"] == pytest.approx(0.55)
    assert found["mce_rows"] == 1


def test_paper_columns_stand_beside_the_size_of_the_golden_set(sure):
    found = paper_columns(sure)
    assert found["golden"]["rows"] == 1013
    assert found["test"]["rows"] == 2000
    raw, scaled = found["test"]["raw"], found["test"]["temperature"]
    assert raw["accuracy"] == scaled["accuracy"]
    assert raw["nll"] > scaled["nll"]
    assert raw["ece"] > scaled["ece"]


def test_curves_say_the_same_as_the_columns(sure):
    """ECE, MCE and recall can be read off what the figures draw."""
    found = paper_columns(sure)
    for way in ("raw", "temperature"):
        columns, curves = found["test"][way], found["curves"][way]
        bins = curves["reliability"]
        filled = [each for each in zip(*bins.values(), strict=True) if each[0]]
        gaps = np.array([abs(sure_of - right) for _, sure_of, right in filled])
        rows = np.array([each[0] for each in filled])
        assert (gaps * rows).sum() / 2000 == pytest.approx(columns["ece"])
        assert gaps.max() == pytest.approx(columns["mce"])
        assert sum(curves["scores"]) == 2000
        assert curves["thresholds"]["recall"][0] == 1.0
        share = sure.parts.test.labels.mean()
        assert curves["thresholds"]["precision"][0] == pytest.approx(share)
    spiky = [sum(found["curves"][way]["scores"][i] for i in (0, -1)) for way in found["curves"]]
    assert spiky[0] > spiky[1]  # temperature flattens what is too sure


def test_a_threshold_that_no_row_reaches_has_no_precision():
    found = threshold_curves(np.array([True, False]), np.array([0.3, 0.1]))
    assert found["precision"][-1] is None
    assert found["recall"][-1] == 0.0


# The true error


def test_the_true_error_is_near_zero_for_the_truth_and_large_for_what_is_too_sure(sure):
    found = true_ce(sure)
    assert found["rows"] == 20_000
    assert found["bins"] == 20
    assert found["raw"] > 0.04
    assert found["temperature"] < 0.01
    assert found["auto"] < 0.015
    assert true_ce(run_of(1.0))["raw"] < 1e-9


def test_without_a_posterior_there_is_no_true_error():
    rows, logits = world(400, 0)
    parts = plain_parts(rows, logits)
    assert "why" in true_ce(run_of_plain(parts, logits))


# Promises


def plain_parts(rows, logits):
    calib = Part(rows.inputs[:200], rows.labels[:200])
    test = Part(rows.inputs[200:], rows.labels[200:])
    return Parts(test, calib, calib, test, CLASSES)


def run_of_plain(parts, logits, hold=()):
    experiment = SimpleNamespace(data="it_tickets", reading={"hold": hold})
    scored = {"calib": logits[:200], "test": logits[200:]}
    method = experiment_named("newsgroups-cnn").methods[0]
    return Fitted(experiment, method, 0, parts, None, scored, 0.0)


def test_a_promise_is_certified_and_checked_on_fresh_messages(sure):
    found = promise(sure)
    assert (found["calib"], found["fresh"], found["known"]) == (1013, 20_000, True)
    (one,) = found["promises"]
    assert one["class"] == "item_defective"
    certified, naive = one["certified"], one["naive"]
    assert "95 % confidence" in certified["guarantee"]
    assert naive["guarantee"] is None
    assert naive["threshold"] < certified["threshold"]
    assert naive["calib"]["precision"] >= 0.85
    assert certified["fresh"]["held"] is True
    counted = certified["fresh"]["precision"]
    assert counted["low"] < certified["fresh"]["truth"] < counted["high"]
    assert certified["fresh"]["recall"] < naive["fresh"]["recall"]


def test_being_too_sure_changes_no_threshold_but_its_number(sure):
    """Ranks decide: in a binary task calibration does not help to keep a promise."""
    plain = promise(run_of(1.0))["promises"][0]
    wild = promise(sure)["promises"][0]
    for way in ("certified", "naive"):
        for rate in ("truth", "recall"):  # thresholds lie between two rows, not quite alike
            assert plain[way]["fresh"][rate] == pytest.approx(wild[way]["fresh"][rate], abs=2e-3)
        assert plain[way]["threshold"] != wild[way]["threshold"]


def test_golden_sets_show_how_often_either_way_holds():
    rows, logits = world(100_000, 1)
    (asked,) = parse_promises(["precision>=0.85"], CLASSES)
    found = golden_sets(rows, logits, asked, CLASSES, size=1000, delta=0.05)
    assert found["sets"] == 100
    naive, certified = found["naive"], found["certified"]
    assert naive["given"] == 100
    assert 30 <= naive["broken"] <= 70
    assert certified["given"] > 80
    assert certified["broken"] <= 10  # 2.9 % of 2,000 sets, and 49.7 % of the naive ones
    assert certified["mean_recall"] < naive["mean_recall"]


def test_where_every_threshold_breaks_the_target_few_are_certified():
    rows, logits = world(50_000, 7, rate=0.845)
    (asked,) = parse_promises(["precision>=0.85"], CLASSES)
    found = golden_sets(rows, logits, asked, CLASSES, size=500, delta=0.05)
    assert found["naive"]["broken"] == found["naive"]["given"] > 90
    assert found["certified"]["given"] <= 10


def test_golden_sets_need_a_truth_and_two_sets():
    rows, logits = world(100, 2)
    (asked,) = parse_promises(["precision>=0.85"], CLASSES)
    assert golden_sets(rows, logits, asked, CLASSES, size=60, delta=0.05) is None
    bare = Part(rows.inputs, rows.labels)
    assert golden_sets(bare, logits, asked, CLASSES, size=10, delta=0.05) is None


def test_what_cannot_be_promised_is_told_why():
    rows, logits = world(400, 3)
    told = promise(run_of_plain(plain_parts(rows, logits), np.zeros_like(logits)))
    (one,) = told["promises"]
    for way in ("certified", "naive"):
        assert one[way]["reached"] is False
        assert "precision>=0.85" in one[way]["why"]
    assert one["golden_sets"] is None


def test_without_a_posterior_the_test_rows_are_counted():
    rows, logits = world(4000, 4)
    told = promise(run_of_plain(plain_parts(rows, logits), logits))
    naive = told["promises"][0]["naive"]["fresh"]
    assert told["known"] is False
    assert naive["truth"] is None
    assert naive["held"] == (naive["precision"]["value"] >= 0.85)


def test_accepted_predictions_of_any_class_can_be_promised():
    rows, logits = world(4000, 5)
    told = promise(run_of_plain(plain_parts(rows, logits), logits, ("accuracy>=0.9",)))
    (one,) = told["promises"]
    assert one["class"] is None
    assert one["certified"]["fresh"]["accuracy"]["n"] > 0


def test_a_promise_of_something_else_is_refused():
    rows, logits = world(400, 6)
    with pytest.raises(InputError, match=r"'recall>=0\.9' must be one target of precision"):
        promise(run_of_plain(plain_parts(rows, logits), logits, ("recall>=0.9",)))


def test_a_population_knows_its_rates():
    rows = Part(["a"] * 4, np.array([1, 0, 1, 0]), np.array([[0.1, 0.9]] * 2 + [[0.6, 0.4]] * 2))
    logits = np.array([[0.0, 3.0], [0.0, 2.0], [0.0, 1.0], [0.0, 0.0]])
    (asked,) = parse_promises(["precision>=0.85"], CLASSES)
    found = Population.of(rows, logits, asked, CLASSES)
    assert found.precision(1.5) == pytest.approx(0.9)
    assert found.precision(1.0) == pytest.approx(2.2 / 3)
    assert found.recall(1.5) == pytest.approx(1.8 / 2.6)
    assert found.precision(9.0) is None
