"""Decision scores of stored predictions: those of the answer, from what is on record."""

import json
import time
from dataclasses import replace

import pytest
from tests.unit.bundle.parts import rows
from tests.unit.serving.bundles import logits_bundle, served

from calibrant.client.messages import Input
from calibrant.serving.metrics import Metrics
from calibrant.serving.recording import Recorder
from calibrant.serving.scoring import ScoreRequest, score
from calibrant.serving.stored_scores import StoredScores
from calibrant.store import Store

NAMES = ("decision_rule", "decision_score", "decision_threshold", "calibrated_threshold")


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "calibrant.db") as store:
        yield store


def record(store, of, logits, **more):
    """Return the answer to a request, and its predictions on record."""
    values = logits.tolist()
    inputs = [Input(logits=row) for row in values]
    request = ScoreRequest(of, values, inputs, b"{}", "r", time.perf_counter(), **more)
    (answer,) = Recorder(store, Metrics()).write(score([request]))
    return json.loads(answer)["predictions"], store.predictions.of_request("r")


@pytest.mark.parametrize("kind", ["points", "no calibrator", "two classes", "out of scope"])
def test_a_stored_score_is_that_of_the_answer(store, tmp_path, kind):
    of = served(logits_bundle(tmp_path / "b", kind).path)
    told, stored = record(store, of, rows(60, len(of.classes)))
    found = StoredScores(store.bundles.get).of(stored)
    assert len(found) == 60
    for row, one in zip(told, found, strict=True):
        shown = dict.fromkeys(NAMES) if one is None else one.to_dict()
        assert {name: row[name] for name in NAMES} == shown
        assert (one is None) == (row["decision"] == "out_of_scope")


def test_the_point_of_the_request_counts(store, logits_folder):
    of = served(logits_folder)
    told, stored = record(store, of, rows(20), point=2)
    assert {row["decision_threshold"] for row in told} == {
        rule.rule.point.decision_threshold for rule in of.bundle.active_rules(2)
    }
    found = StoredScores(store.bundles.get).of(stored)
    assert [one.to_dict()["decision_score"] for one in found] == [
        row["decision_score"] for row in told
    ]


def test_without_a_point_there_is_no_score(store, tmp_path):
    of = served(logits_bundle(tmp_path / "b", "no points").path)
    told, stored = record(store, of, rows(3))
    assert StoredScores(store.bundles.get).of(stored) == [None] * 3
    assert [row["decision_score"] for row in told] == [None] * 3


def test_a_record_that_cannot_be_read_has_no_score(store, logits_folder):
    _, stored = record(store, served(logits_folder), rows(2))
    known = store.bundles.get(stored[0].bundle)
    damaged = replace(known, manifest={**known.manifest, "operating_points": [{}]})
    for find in (lambda hash: damaged, lambda hash: None):
        assert StoredScores(find).of(stored) == [None, None]
    short = [replace(each, logits=each.logits[:1]) for each in stored]
    assert StoredScores(store.bundles.get).of(short) == [None, None]
