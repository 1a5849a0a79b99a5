"""What was decided goes on record in one commit, and the answer is what the record says."""

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic_core import to_json
from tests.sentences import refuses
from tests.unit.serving.bundles import CLASSES, logits_bundle, served

from calibrant.client.messages import Input
from calibrant.errors import StoreError, StoreUnavailable
from calibrant.serving.metrics import Metrics
from calibrant.serving.recording import Recorder
from calibrant.serving.scoring import ScoreRequest, score
from calibrant.store import Logged, Store


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "calibrant.db") as store:
        yield store


@pytest.fixture
def recorder(store):
    metrics = Metrics()
    metrics.set_queue_depth(lambda: 0)
    return Recorder(store, metrics)


@pytest.fixture(scope="module")
def of(logits_folder):
    return served(logits_folder)


def asked(of, request, *logits, body=b"{}", **more):
    inputs = [Input(logits=row) for row in logits]
    return ScoreRequest(of, logits, inputs, body, request, time.perf_counter(), **more)


def answers(recorder, *requests):
    return [json.loads(each) for each in recorder.write(score(requests))]


def test_the_answer_is_what_is_on_record(recorder, store, of):
    one = asked(of, "r1", [9.0, 0.0, 0.0], [0.0, 0.5, 0.0], unit="u", use_case="c", branch="b",
                key=store.keys.add("shop", "predict")[0].id)  # fmt: skip
    (answer,) = answers(recorder, one)
    assert (answer["request"], answer["repeated"]) == ("r1", False)
    assert answer["bundle"] == {"id": of.id, "hash": of.hash}
    stored = store.predictions.of_request("r1")
    assert [row["id"] for row in answer["predictions"]] == [each.id for each in stored]
    for position, (told, kept) in enumerate(zip(answer["predictions"], stored, strict=True)):
        assert told["probabilities"] == dict(zip(CLASSES, kept.probs, strict=True))
        for name in ("label", "decision", "acted_as", "action", "operating_point", "out_of_scope"):
            assert told[name] == getattr(kept, name)
        assert (kept.position, kept.bundle, kept.score) == (position, of.hash, max(kept.probs))
        assert (kept.unit, kept.use_case, kept.branch, kept.key) == ("u", "c", "b", one.key)
        assert kept.input == {"logits": one.rows[position]}
        assert kept.input_hash == store.keyed_hash(to_json(one.rows[position]))
        assert kept.asked_point is None
        assert kept.logits == one.rows[position]
        assert timedelta(0) <= datetime.now(UTC) - kept.at < timedelta(minutes=10)
        assert 0 <= kept.latency_ms < 600_000
    assert stored[0].decision == "act"
    first, second = answer["predictions"]
    assert first["decision_score"] >= first["decision_threshold"] > second["decision_score"]


def test_the_bundle_is_on_record_before_its_first_prediction(recorder, store, of):
    answers(recorder, asked(of, "r1", [1.0, 2.0, 3.0]))
    found = store.bundles.get(of.hash)
    assert (found.name, tuple(found.classes)) == ("returns", CLASSES)
    assert found.manifest == of.bundle.to_dict()


def test_a_batch_is_answered_in_order_and_repeats_are_told(recorder, store, of):
    batch = [asked(of, name, [float(i), 0.0, 0.0]) for i, name in enumerate("abcab")]
    found = answers(recorder, *(replace(each, body=each.request.encode()) for each in batch))
    assert [each["request"] for each in found] == list("abcab")
    assert [each["repeated"] for each in found] == [False] * 3 + [True] * 2
    assert found[3]["predictions"] == found[0]["predictions"]
    assert store.predictions.count() == 3


def test_another_body_under_the_same_id_is_a_conflict(recorder, store, of):
    first, same, other = (asked(of, "r", [1.0, 2.0, 3.0], body=body) for body in (b"1", b"1", b"2"))
    answers(recorder, first)
    told, problem = recorder.write(score([same, other]))
    assert json.loads(told)["repeated"] is True
    assert problem.status == 409
    assert "use a new key" in problem.detail
    assert store.predictions.count() == 1


def test_a_retry_after_a_swap_gets_the_answer_of_the_bundle_that_decided(
    recorder, store, of, tmp_path
):
    (before,) = answers(recorder, asked(of, "r", [1.0, 2.0, 3.0]))
    newer = served(logits_bundle(tmp_path / "two", "two classes").path)
    fresh = Recorder(store, Metrics())  # as a process that never saw the old bundle
    for each in (recorder, fresh):
        (again,) = answers(each, asked(newer, "r", [1.0, 2.0]))
        assert again == {**before, "repeated": True}
        assert set(again["predictions"][0]["probabilities"]) == set(CLASSES)


def test_a_bundle_that_is_not_on_record_is_told(recorder):
    with refuses(StoreError, "predictions", "bundle beef", "not the bundle"):
        recorder.classes_of("beef")


def test_the_record_says_which_point_was_asked_for(recorder, store, of):
    answers(recorder, asked(of, "r", [0.0, 0.0, 0.0], point=0))
    (kept,) = store.predictions.of_request("r")
    assert (kept.asked_point, kept.operating_point, kept.decision) == (0, None, "abstain")


def test_a_row_that_the_store_refuses_does_not_take_others_with_it(recorder, store, of):
    batch = [asked(of, name, [1.0, 2.0, 3.0], unit=unit) for name, unit in
             (("a", "u"), ("b", "no\0no"), ("c", "u"))]  # fmt: skip
    first, refused, last = recorder.write(score(batch))
    assert [json.loads(each)["request"] for each in (first, last)] == ["a", "c"]
    assert refused.status == 500
    assert "Retry-After" not in refused.headers
    assert store.predictions.count() == 2


def test_a_store_that_is_away_is_told_for_all(recorder, of, monkeypatch):
    def away(requests):
        raise StoreUnavailable("away.")

    monkeypatch.setattr(recorder._store.predictions, "add", away)
    with pytest.raises(StoreUnavailable):
        recorder.write(score([asked(of, name, [1.0, 2.0, 3.0]) for name in "ab"]))


def test_another_database_in_its_place_gets_the_bundle_too(recorder, of, tmp_path):
    answers(recorder, asked(of, "r", [1.0, 2.0, 3.0]))
    with Store.open(tmp_path / "other.db") as other:
        recorder._store = other
        answers(recorder, asked(of, "r", [1.0, 2.0, 3.0]))
        assert other.bundles.get(of.hash) is not None
        assert other.predictions.count() == 1


def test_a_request_that_was_erased_meanwhile_is_to_come_again(recorder, of, monkeypatch):
    monkeypatch.setattr(
        recorder._store.predictions, "add", lambda requests: [Logged((), erased=True)]
    )
    (problem,) = recorder.write(score([asked(of, "r", [1.0, 2.0, 3.0])]))
    assert (problem.status, problem.headers) == (503, {"Retry-After": "1"})


def test_an_answer_that_cannot_be_made_does_not_take_others_with_it(recorder, of, monkeypatch):
    made = recorder._answer
    monkeypatch.setattr(
        recorder,
        "_answer",
        lambda request, *more: 1 / 0 if request == "b" else made(request, *more),
    )
    found = recorder.write(score([asked(of, name, [1.0, 2.0, 3.0]) for name in "abc"]))
    assert [type(each) is bytes for each in found] == [True, False, True]
    assert found[1].status == 500


def test_only_what_is_new_is_counted(recorder, of):
    for _ in range(2):
        answers(recorder, asked(of, "r", [9.0, 0.0, 0.0], [0.0, 0.0, 0.0]))
    text = recorder._metrics.text().decode()
    assert 'calibrant_decisions_total{decision="act",label="defect"} 1.0' in text
    assert 'calibrant_decisions_total{decision="abstain",label="defect"} 1.0' in text
    assert "calibrant_score_count 2.0" in text
