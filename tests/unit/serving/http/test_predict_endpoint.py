"""Requests for predictions do without the framework, and nobody can tell."""

import asyncio
import json
import logging

import pytest

from calibrant.serving.http.predict_endpoint import PredictEndpoint

BODY = {"inputs": [{"logits": [9.0, 0.0, 0.0]}]}


@pytest.fixture
def client(serving, logits_folder):
    return serving(logits_folder)


def same(one, other):
    assert one.status_code == other.status_code
    assert one.headers["content-type"] == other.headers["content-type"]
    assert int(one.headers["content-length"]) == len(one.content)
    first, second = one.json(), other.json()
    for each in (first, second):
        each.pop("request", None)
        for row in each.get("predictions", []):
            row.pop("id")
    assert first == second


@pytest.mark.parametrize(
    "request_",
    [
        {"json": BODY},
        {"json": {**BODY, "point": 2, "unit": "u"}},
        {"json": {"inputs": []}},
        {"content": b"{", "headers": {"Content-Type": "application/json"}},
        {"content": b"{}", "headers": {"Content-Type": "text/plain"}},
        {"json": BODY, "headers": {"Idempotency-Key": "a b"}},
        {"json": BODY, "headers": {"Authorization": "Bearer wrong"}},
        {"content": b" " * 1_048_577, "headers": {"Content-Type": "application/json"}},
    ],
)
def test_it_answers_as_the_route_that_is_described(client, request_, monkeypatch):
    own = client.post("/v1/predict", **request_)
    doorway = client.app.host_guard
    monkeypatch.setattr(doorway, "_predict", doorway._app)  # the framework's own route
    same(own, client.post("/v1/predict", **request_))


def test_names_of_headers_may_be_written_in_any_case(client):
    headers = {"IDEMPOTENCY-KEY": "x", "content-TYPE": "application/json"}
    first, again = (
        client.post("/v1/predict", content=json.dumps(BODY), headers=headers) for _ in range(2)
    )
    assert (first.json()["repeated"], again.json()["repeated"]) == (False, True)


def test_other_methods_are_for_the_framework(client):
    assert client.get("/v1/predict").status_code == 405
    assert client.options("/v1/predict").status_code == 405
    assert client.post("/v1/predict/").status_code == 404


def test_a_fault_of_ours_is_told_without_its_details(client, monkeypatch, caplog):
    def fault(*args, **more):
        raise ZeroDivisionError("kept for the log")

    monkeypatch.setattr(client.service, "predict", fault)
    with caplog.at_level(logging.ERROR, logger="calibrant.serving"):
        answer = client.post("/v1/predict", json=BODY)
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "kept for the log" not in answer.text
    assert "kept for the log" in caplog.text


def test_a_client_that_went_away_is_not_waited_for(client):
    sent = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/predict",
        "headers": [(b"content-type", b"application/json")],
    }
    asyncio.run(PredictEndpoint(client.service)(scope, receive, send))
    assert sent[0]["status"] == 400
    assert client.service.store.predictions.count() == 0
