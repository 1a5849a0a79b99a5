"""`/v1/units`: all that is on record of a unit is erased, and nothing else."""

import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from tests.sentences import assert_mentions

from calibrant.errors import StoreUnavailable
from calibrant.store import erasure as erasing


@pytest.fixture
def client(serving, logits_folder):
    return serving(logits_folder)


def predict(client, unit):
    body = {"inputs": [{"logits": [9.0, 0.0, 0.0]}] * 2, "unit": unit}
    answer = client.post("/v1/predict", json=body)
    return [row["id"] for row in answer.json()["predictions"]]


def test_a_unit_is_erased_with_its_labels_and_outcomes(client):
    gone, stays = predict(client, "a"), predict(client, "b")
    told = [{"prediction": id, "label": "parts", "outcome": "kept"} for id in (gone[0], stays[0])]
    client.post("/v1/outcomes", json={"outcomes": told})
    answer = client.delete("/v1/units/a")
    assert answer.json() == {"predictions": 2, "labels": 1, "outcomes": 1}
    assert [client.get(f"/v1/predictions/{id}").status_code for id in gone] == [404, 404]
    assert [client.get(f"/v1/predictions/{id}").status_code for id in stays] == [200, 200]
    assert client.delete("/v1/units/a").json() == {"predictions": 0, "labels": 0, "outcomes": 0}


@pytest.mark.parametrize(
    "unit", ["a/b", "../x", "a b", "a\u00a0b\u200b", "ü%", "?x#y", "'; DROP TABLE", "x" * 200, "/"]
)
def test_whatever_a_unit_is_called_it_can_be_erased(client, unit):
    predict(client, unit)
    answer = client.delete(f"/v1/units/{quote(unit, safe='').replace('.', '%2E')}")
    assert answer.json()["predictions"] == 2
    assert client.service.store.predictions.count() == 0


@pytest.mark.parametrize("unit", ["%00", "a%0Ab", "", "x" * 201, "%7F"])
def test_what_cannot_be_a_unit_is_not_there(client, unit):
    predict(client, "a")
    answer = client.delete(f"/v1/units/{unit}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert client.service.store.predictions.count() == 2


UNITS = ["a", "erase", "a/b", "..", "ü%2F\u200b", "x" * 200]


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_in_the_body_is_in_no_address(client, unit):
    predict(client, unit)
    predict(client, "other")
    answer = client.post("/v1/units/erase", json={"unit": unit})
    assert answer.json() == {"predictions": 2, "labels": 0, "outcomes": 0}
    assert client.service.store.predictions.count() == 2
    assert client.delete("/v1/units/other").json()["predictions"] == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ('{"unit": ""}', 422),
        ('{"unit": "a\\u0000"}', 422),
        ('{"unit": 17}', 422),
        ('{"unit": "a", "more": 1}', 422),
        ('{"unit": "a", "unit": "b"}', 422),
        ("{}", 422),
        ("no", 400),
    ],
)
def test_a_body_that_names_no_unit_erases_nothing(client, body, status):
    predict(client, "a")
    headers = {"Content-Type": "application/json"}
    assert client.post("/v1/units/erase", content=body, headers=headers).status_code == status
    assert client.post("/v1/units/erase", content='{"unit": "a"}').status_code == 415
    assert client.service.store.predictions.count() == 2


def test_only_an_admin_erases(serving, logits_folder):
    client = serving(logits_folder, need_key=True)
    for role, status in (("predict", 403), ("label", 403), ("admin", 200)):
        _, token = client.service.store.keys.add(role, role)
        headers = {"Authorization": f"Bearer {token}"}
        answer = client.post("/v1/units/erase", json={"unit": "a"}, headers=headers)
        assert answer.status_code == status
    assert client.post("/v1/units/erase", json={"unit": "a"}).status_code == 401


def test_units_are_erased_one_after_the_other(client, monkeypatch):
    forget, lock, most = client.service.store.forget, threading.Lock(), []

    def alone(unit):
        most.append(lock.acquire(blocking=False))
        try:
            return forget(unit)
        finally:
            if most[-1]:
                lock.release()

    monkeypatch.setattr(client.service.store, "forget", alone)
    for i in range(6):
        predict(client, f"unit {i}")
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda i: client.delete(f"/v1/units/unit {i}"), range(6)))
    assert [answer.json()["predictions"] for answer in found] == [2] * 6
    assert most == [True] * 6


def test_rows_that_are_deleted_from_a_file_that_is_not_clean_yet(client, monkeypatch):
    predict(client, "a")

    def busy(*about):
        raise StoreUnavailable("another process reads the store.")

    with monkeypatch.context() as patch:
        patch.setattr(erasing, "_outside_transactions", busy)
        answer = client.post("/v1/units/erase", json={"unit": "a"})
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["detail"].startswith("the rows are deleted, but their bytes may still be")
    assert client.service.store.predictions.count() == 0
    again = client.post("/v1/units/erase", json={"unit": "a"})  # cleans the file
    assert (again.status_code, again.json()["predictions"]) == (200, 0)


def test_a_database_that_is_away_is_not_described(client, monkeypatch, caplog):
    def away(unit):
        raise StoreUnavailable("the store db.internal:5432 is away.")

    monkeypatch.setattr(client.service.store, "forget", away)
    answer = client.post("/v1/units/erase", json={"unit": "a"})
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert "db.internal" not in answer.text
    assert_mentions(
        answer.json()["detail"],
        "database cannot be written",
        "nothing",
        "erased",
        "try again",
        "disk",
        "full",
        "free some space",
        "first",
    )
    assert caplog.messages == ["the store db.internal:5432 is away."]
