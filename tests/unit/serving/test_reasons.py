"""Reasons in answers of the service: those of its bundle, on request only, and never stored."""

import json
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.boosting.models import TABLE as SHELVES
from tests.unit.bundle.explained import (
    FAMILIES,
    UNEXPLAINED,
    explained_bundle,
    ngram_scorer,
    wet_scorer,
)
from tests.unit.bundle.model_parts import TABLE, TEXTS
from tests.unit.serving.bundles import rows_of
from tests.unit.serving.running import running

from calibrant.bundle import load_bundle
from calibrant.client.client import Client
from calibrant.client.messages import Input
from calibrant.client.transport import RequestRefused
from calibrant.serving import explaining
from calibrant.serving.scoring import ScoreRequest, check_inputs, collate, score


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One bundle of each family that explains; they decide where they know the class."""
    made = tmp_path_factory.mktemp("families")
    return {
        family: explained_bundle(made / family.replace(" ", "-"), family, decides=True).path
        for family in FAMILIES
    }


def inputs_of(rows):
    if isinstance(rows, dict):
        few = {name: column[:30] for name, column in rows.items()}
        return [{"row": row} for row in rows_of(few)]
    return [{"text": text} for text in rows]


def ask(client, inputs, retry=None, **fields):
    headers = {} if retry is None else {"Idempotency-Key": retry}
    answer = client.post("/v1/predict", json={"inputs": inputs, **fields}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("family", FAMILIES)
def test_base_and_reasons_give_the_logits_on_record(serving, folders, family):
    client, bundle = serving(folders[family]), load_bundle(folders[family])
    inputs = inputs_of(FAMILIES[family][1])
    found = ask(client, inputs, reasons=100)["predictions"]
    base, names = bundle.explain(FAMILIES[family][1]).base, list(bundle.classes)
    judged = 0
    for each in found:
        stored = client.service.store.predictions.get(each["id"])
        logits, k = np.array(stored.logits), names.index(each["label"])
        if np.ptp(logits) == 0:
            assert each["reasons"] == []
            continue
        judged += 1
        ahead, start = (z[k] - np.delete(z, k).mean() for z in (logits, base))
        total = sum(reason["contribution"] for reason in each["reasons"])
        assert start + total == pytest.approx(ahead, abs=1e-4)
        sizes = [abs(reason["contribution"]) for reason in each["reasons"]]
        assert sizes == sorted(sizes, reverse=True)
        assert all(isinstance(reason["part"], str) for reason in each["reasons"])
    assert judged > len(found) / 2


def test_two_words_by_hand(serving, tmp_path):
    client = serving(explained_bundle(tmp_path / "b", scorer=wet_scorer()).path)
    inputs = [{"text": "wet"}, {"text": "dry wet"}, {"text": "lost"}]
    first, both, lost = ask(client, inputs, reasons=5)["predictions"]
    assert first["label"] == "no"
    assert first["reasons"] == [{"part": "wet", "contribution": 2.0}]
    assert both["label"] == "yes"
    assert [each["part"] for each in both["reasons"]] == ["dry", "wet"]
    assert lost["reasons"] == []  # a row of equal logits
    (only,) = ask(client, inputs[1:2], reasons=1)["predictions"]
    assert only["reasons"] == both["reasons"][:1]


def test_they_are_null_and_not_computed_unless_asked_for(serving, folders, monkeypatch):
    client = serving(folders["boosting"])
    asked = []
    real = explaining.explain_rows
    monkeypatch.setattr(explaining, "explain_rows", lambda *args: asked.append(args) or real(*args))
    inputs = inputs_of(SHELVES)[:3]
    for fields in ({}, {"reasons": 0}, {"reasons": None}):
        found = ask(client, inputs, **fields)["predictions"]
        assert [each["reasons"] for each in found] == [None] * 3
    assert asked == []
    explained = ask(client, inputs, reasons=2)["predictions"]
    assert len(asked) == 1
    changing = ("id", "reasons")
    for one, other in zip(found, explained, strict=True):
        assert {k: v for k, v in one.items() if k not in changing} == {
            k: v for k, v in other.items() if k not in changing
        }


def test_only_the_requests_of_a_batch_that_ask_are_explained(serving, folders):
    client = serving(folders["boosting"])
    served, inputs = client.service.slot.current, SHELVES
    given = [Input.model_validate(each) for each in inputs_of(inputs)[:4]]
    checked = check_inputs(given, served, max_text=100)
    explained = served.bundle.explain(collate(checked, served)).rows
    batch = [
        ScoreRequest(served, checked, given, b"", "r", 0.0, reasons=reasons, explained=explained)
        for reasons in (0, 2, 0, 1)
    ]
    counts = [[len(row.reasons or []) for row in rows] for _, rows in score(batch)]
    assert counts[0] == counts[2] == [0] * 4
    assert max(counts[1]) == 2
    assert max(counts[3]) == 1
    alone = score(batch[1:2])[0][1]
    assert [row.reasons for row in score(batch)[1][1]] == [row.reasons for row in alone]


@pytest.fixture
def held(monkeypatch):
    """Two events: that reasons are being computed, and that they may be."""
    entered, may_go, real = threading.Event(), threading.Event(), explaining.explain_rows

    def wait(*args):
        entered.set()
        assert may_go.wait(60)
        return real(*args)

    monkeypatch.setattr(explaining, "explain_rows", wait)
    return entered, may_go


def test_others_are_answered_while_reasons_are_computed(serving, folders, held):
    client = serving(folders["boosting"])
    inputs, (entered, may_go) = inputs_of(SHELVES)[:2], held
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(ask, client, inputs, reasons=2)
        assert entered.wait(60)
        assert ask(client, inputs)["predictions"][0]["reasons"] is None
        assert not slow.done()
        may_go.set()
        assert slow.result(60)["predictions"][0]["reasons"]


def test_reasons_that_take_too_long_are_refused_and_abandoned(serving, folders, monkeypatch):
    client = serving(folders["boosting"], timeout=0.3)
    inputs, real = inputs_of(SHELVES)[:30], explaining.explain_rows
    calls, may_go = [], threading.Event()

    def wait(*args):
        calls.append(args)
        assert may_go.wait(60)
        return real(*args)

    monkeypatch.setattr(explaining, "explain_rows", wait)
    monkeypatch.setattr(explaining, "_BLOCK", 3)
    answer = client.post("/v1/predict", json={"inputs": inputs, "reasons": 2})
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert_mentions(answer.json()["detail"], "30 inputs", "0.3 s", "fewer")
    may_go.set()
    monkeypatch.setattr(client.service._explainer, "_timeout", 60)
    assert ask(client, inputs[:2], reasons=2)["predictions"][0]["reasons"]
    assert len(calls) == 2  # one block of the first request, and the second request
    assert client.service.store.predictions.count() == 2


def test_more_rows_than_the_queue_holds_do_not_wait_for_reasons(serving, folders, held):
    client = serving(folders["boosting"], max_inputs=3, max_queue=3)
    inputs, (entered, may_go) = inputs_of(SHELVES)[:2], held
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(ask, client, inputs, reasons=2)
        assert entered.wait(60)
        answer = client.post("/v1/predict", json={"inputs": inputs, "reasons": 2})
        assert answer.status_code == 503
        may_go.set()
        assert slow.result(60)["predictions"][0]["reasons"]


def test_a_repeated_request_has_its_reasons_again(serving, folders):
    client = serving(folders["boosting"])
    inputs = inputs_of(SHELVES)[:3]
    first, again = (ask(client, inputs, retry="order-17", reasons=2) for _ in range(2))
    assert first["predictions"][0]["reasons"]
    assert again == {**first, "repeated": True}
    headers = {"Idempotency-Key": "order-17"}
    other = client.post("/v1/predict", json={"inputs": inputs, "reasons": 3}, headers=headers)
    assert other.status_code == 409


@pytest.mark.parametrize("newer", ["explains", "does not"])
def test_reasons_of_a_newer_bundle_do_not_join_a_stored_answer(serving, tmp_path, newer):
    folder = explained_bundle(tmp_path / "b", "linear", decides=True).path
    client = serving(folder)
    inputs = inputs_of(TABLE)
    first = ask(client, inputs, retry="order-17", reasons=2)
    shutil.rmtree(folder)
    if newer == "explains":
        explained_bundle(folder, "linear")
    else:
        explained_bundle(folder, scorer=UNEXPLAINED["ensemble"]())
    assert client.post("/v1/bundle/reload").status_code == 200
    again = ask(client, inputs, retry="order-17", reasons=2)
    wanted = [{**each, "reasons": None} for each in first["predictions"]]
    assert again == {**first, "predictions": wanted, "repeated": True}


def test_nothing_more_is_stored(serving, folders):
    client = serving(folders["ngrams"])
    (row,) = ask(client, [{"text": TEXTS[0]}], reasons=5)["predictions"]
    assert row["reasons"]
    assert client.get(f"/v1/predictions/{row['id']}").json()["reasons"] is None
    file = client.service.settings.db.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file)) as connection:
        cells = connection.execute("SELECT * FROM predictions").fetchone()
    assert "contribution" not in str(cells)


def test_redacted_texts_show_no_address(serving, tmp_path):
    text = "write to missing@arrival.com, it broke"
    scorer = ngram_scorer([*TEXTS, text], redact=True)
    client = serving(explained_bundle(tmp_path / "b", scorer=scorer).path)
    (row,) = ask(client, [{"text": text}], reasons=100)["predictions"]
    parts = " ".join(each["part"] for each in row["reasons"])
    assert "broke" in parts
    for secret in ("@", "missing", "arrival"):
        assert secret not in parts


@pytest.mark.parametrize("kind", [*UNEXPLAINED, "logits"])
def test_models_without_reasons_are_refused_with_a_problem(serving, tmp_path, logits_folder, kind):
    if kind == "logits":
        folder, inputs = logits_folder, [{"logits": [1.0, 0.0, 0.0]}]
    else:
        folder = explained_bundle(tmp_path / "b", scorer=UNEXPLAINED[kind]()).path
        inputs = inputs_of(TEXTS if kind == "network" else TABLE)
    client = serving(folder)
    answer = client.post("/v1/predict", json={"inputs": inputs, "reasons": 5})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert_mentions(answer.json()["detail"], "reasons", "boosting", "ngrams", "got 5")
    assert client.service.store.predictions.count() == 0
    assert client.get("/v1/bundle").json()["gives_reasons"] is False
    assert ask(client, inputs)["predictions"][0]["reasons"] is None


@pytest.mark.parametrize("value", [-1, 101, 2.5, "5", True])
def test_other_numbers_of_reasons_are_refused(serving, folders, value):
    body = {"inputs": inputs_of(SHELVES)[:1], "reasons": value}
    answer = serving(folders["boosting"]).post("/v1/predict", json=body)
    assert answer.status_code == 422
    assert_mentions(json.dumps(answer.json()), "reasons")


def test_the_client_asks_for_them(folders, tmp_path):
    bundle, texts = load_bundle(folders["ngrams"]), [*TEXTS, "zzz"]
    with (
        running(folders["ngrams"], f"sqlite:///{tmp_path}/calibrant.db") as service,
        Client(service.url) as client,
    ):
        assert client.bundle().gives_reasons
        found = client.predict(texts=texts, reasons=np.int64(3)).predictions
        assert [each.reasons for each in client.predict(texts=texts).predictions] == [None] * 5
        assert client.prediction(found[0].id).reasons is None
        with refuses(RequestRefused, "reasons", "100"):
            client.predict(texts=texts, reasons=101)
    explained = bundle.explain(texts).rows
    for each, row in zip(found, explained, strict=True):
        wanted = row.reasons(bundle.classes.index(each.label), 3)
        assert [(one.part, one.contribution) for one in each.reasons] == wanted
    assert found[-1].reasons == ()
