"""A local service answers to local names only; every answer is counted; predictions go first."""

import asyncio
import json
import logging

import pytest
from tests.sentences import assert_mentions

from calibrant.serving.http.middleware import PredictEndpoint


def status(client, host, path="/healthz"):
    answer = client.get(path, headers={"host": host})
    return answer.status_code


@pytest.fixture
def local(serving, logits_folder):
    return serving(logits_folder)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8000", "localhost", "LOCALHOST:1", "[::1]", "[::1]:8000", "127.3.2.1"],
)
def test_local_names_are_let_in(local, host):
    assert status(local, host) == 200


@pytest.mark.parametrize(
    "host",
    ["example.org", "example.org:8000", "127.0.0.1.example.org", "localhost.example.org",
     "192.168.0.7", "[::2]:80", "[::1", "", ":8000", "0.0.0.0"],
)  # fmt: skip
def test_a_page_in_a_browser_that_comes_under_another_name_is_turned_away(local, host):
    answer = local.post(
        "/v1/predict", json={"inputs": [{"logits": [1, 2, 3]}]}, headers={"host": host}
    )
    assert answer.status_code == 421
    assert answer.headers["content-type"] == "application/problem+json"
    assert_mentions(answer.json()["detail"], "service", "accepts", "host name localhost", "use")
    assert local.service.store.predictions.count() == 0


def test_where_keys_are_needed_any_name_will_do(serving, logits_folder):
    client = serving(logits_folder, host="0.0.0.0")
    assert status(client, "models.example.org") == 200
    assert status(client, "models.example.org", "/v1/bundle") == 401


def test_every_answer_is_counted_by_its_route(local):
    for path in ("/healthz", "/v1/predictions/a", "/v1/predictions/b", "/etc/passwd", "/v1"):
        local.get(path)
    local.get("/v1/predict")
    local.get("/healthz", headers={"host": "example.org"})
    text = local.get("/metrics").text
    for route, code, times in (
        ("/healthz", 200, 1),
        ("/v1/predictions/{id}", 404, 2),
        ("unknown", 404, 2),
        ("unknown", 421, 1),
        ("/v1/predict", 405, 1),
    ):
        assert f'calibrant_requests_total{{route="{route}",status="{code}"}} {times}.0' in text


def test_a_failure_of_ours_is_counted_too(local, monkeypatch):
    monkeypatch.setattr(local.service.store, "check", None)  # not even callable
    assert local.get("/readyz").status_code == 500
    assert 'route="/readyz",status="500"} 1.0' in local.get("/metrics").text


def test_answers_are_not_cached_and_not_taken_for_something_else(local):
    for path in ("/healthz", "/nowhere"):
        headers = local.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"


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
