"""Health: alive, ready or not, and figures."""

import threading

import pytest
from tests.sentences import assert_mentions

from calibrant.errors import StoreUnavailable


@pytest.fixture
def client(serving, logits_folder):
    return serving(logits_folder)


def test_a_service_that_can_serve(client):
    assert client.get("/healthz").json() == {"status": "alive"}
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert ready.json() == {"status": "ready", "bundle": client.service.slot.current.id}


def test_a_load_balancer_may_ask_with_head(client):
    for path in ("/healthz", "/readyz"):
        answer = client.head(path)
        assert (answer.status_code, answer.content) == (200, b"")
    client.service.readiness.leaving = True
    assert client.head("/readyz").status_code == 503
    assert client.head("/healthz").status_code == 200
    assert client.put("/healthz").status_code == 405
    assert "head" not in client.get("/openapi.json").json()["paths"]["/healthz"]


def test_a_database_that_is_away_is_told_and_comes_back(client, monkeypatch, caplog):
    def away():
        raise StoreUnavailable("the store db.internal:5432 is away.")

    with monkeypatch.context() as patch:
        patch.setattr(client.service.store, "check", away)
        for _ in range(3):
            answer = client.get("/readyz")
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        # Whoever asks has no key, so where it is stands in the log alone, and there once.
        assert_mentions(answer.json()["detail"], "database", "not usable", "see", "log")
        assert "db.internal" not in answer.text
        assert caplog.messages == [
            "the database is not usable: the store db.internal:5432 is away."
        ]
        assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 200
    assert client.get("/readyz").status_code == 200
    assert caplog.messages[1:] == ["the database is usable again"]


def test_a_service_about_to_stop_is_not_ready_but_answers(client):
    client.service.readiness.leaving = True
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["detail"]) == (503, "the service is stopping.")
    answer = client.post("/v1/predict", json={"inputs": [{"logits": [1, 2, 3]}]})
    assert answer.status_code == 200


def test_figures_are_made_beside_the_event_loop(client, monkeypatch):
    made_in, text = [], client.service.metrics.text

    def noted():
        made_in.append(threading.get_ident())
        return text()

    monkeypatch.setattr(client.service.metrics, "text", noted)
    loop_in = client.portal.call(threading.get_ident)
    assert client.get("/metrics").status_code == 200
    assert made_in != [loop_in]


def test_a_service_that_stops_is_not_ready_and_takes_no_more(client):
    client.service.draining = True
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["detail"]) == (503, "the service is stopping.")
    answer = client.post("/v1/predict", json={"inputs": [{"logits": [1, 2, 3]}]})
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert client.get("/healthz").status_code == 200


def test_figures_after_traffic(client):
    for logits in ([9, 0, 0], [0, 9, 0], [0, 0, 0]):
        client.post("/v1/predict", json={"inputs": [{"logits": logits}]})
    client.post("/v1/predict", json={"inputs": []})
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    for line in (
        'calibrant_requests_total{route="/v1/predict",status="200"} 3.0',
        'calibrant_requests_total{route="/v1/predict",status="422"} 1.0',
        'calibrant_request_seconds_count{route="/v1/predict"} 4.0',
        'calibrant_decisions_total{decision="act",label="defect"} 1.0',
        'calibrant_decisions_total{decision="act",label="parts"} 1.0',
        'calibrant_decisions_total{decision="abstain",label="defect"} 1.0',
        "calibrant_score_count 3.0",
        "calibrant_batch_rows_sum 3.0",
        "calibrant_store_seconds_count 3.0",
        "calibrant_queue_rows 0.0",
        "calibrant_bundle_swaps_total 0.0",
        "calibrant_bundle_refused 0.0",
    ):
        assert f"\n{line}\n" in answer.text
