"""`POST /v1/outcomes`: labels and outcomes, all or none, and once however often they are sent."""

import pytest
from tests.sentences import assert_mentions


@pytest.fixture
def client(serving, logits_folder):
    return serving(logits_folder, max_inputs=50)


@pytest.fixture
def ids(client):
    body = {"inputs": [{"logits": [9.0, 0.0, 0.0]}] * 3}
    answer = client.post("/v1/predict", json=body).json()
    return [row["id"] for row in answer["predictions"]]


def send(client, *outcomes, **headers):
    return client.post("/v1/outcomes", json={"outcomes": list(outcomes)}, headers=headers)


def test_labels_and_outcomes_are_on_record_with_their_prediction(client, ids):
    answer = send(
        client,
        {"prediction": ids[0], "label": "parts", "source": "agent"},
        {"prediction": ids[1], "outcome": "refund", "value": 12.5, "text": "two\nlines"},
        {"prediction": ids[2], "label": "defect", "outcome": "kept"},
    )
    assert (answer.status_code, answer.json()) == (200, {"added": 4, "repeated": 0})
    one, two, three = (client.get(f"/v1/predictions/{id}").json() for id in ids)
    (label,) = one["labels"]
    assert (label["label"], label["source"], one["outcomes"]) == ("parts", "agent", [])
    (outcome,) = two["outcomes"]
    assert (outcome["outcome"], outcome["value"], outcome["text"]) == ("refund", 12.5, "two\nlines")
    assert (len(three["labels"]), len(three["outcomes"])) == (1, 1)
    assert three["outcomes"][0]["value"] is None


def test_a_label_may_be_corrected_and_both_stay(client, ids):
    for label in ("parts", "defect"):
        send(client, {"prediction": ids[0], "label": label})
    found = client.get(f"/v1/predictions/{ids[0]}").json()
    assert [each["label"] for each in found["labels"]] == ["parts", "defect"]


def test_a_retry_is_recorded_once(client, ids):
    told = [{"prediction": id, "label": "parts", "outcome": "kept"} for id in ids]
    key = {"Idempotency-Key": "x"}
    assert send(client, *told, **key).json() == {"added": 6, "repeated": 0}
    assert send(client, *told, **key).json() == {"added": 0, "repeated": 6}
    assert send(client, told[0], **{"Idempotency-Key": "y"}).json() == {"added": 2, "repeated": 0}
    assert len(client.get(f"/v1/predictions/{ids[0]}").json()["labels"]) == 2


def test_the_same_key_with_another_body_is_a_conflict(client, ids):
    key = {"Idempotency-Key": "x"}
    send(client, {"prediction": ids[0], "label": "parts"}, **key)
    other = send(client, {"prediction": ids[0], "label": "defect"}, **key)
    assert other.status_code == 409
    assert "another body" in other.json()["detail"]
    assert len(client.get(f"/v1/predictions/{ids[0]}").json()["labels"]) == 1
    longer = [{"prediction": ids[0], "label": "parts"}, {"prediction": ids[0], "outcome": "kept"}]
    assert send(client, *longer, **key).status_code == 409
    assert send(client, longer[1], **key).status_code == 409


def test_keys_for_retries_are_those_of_an_api_key(serving, logits_folder):
    client = serving(logits_folder)
    body = {"inputs": [{"logits": [9.0, 0.0, 0.0]}]}
    (row,) = client.post("/v1/predict", json=body).json()["predictions"]
    for name in ("shop", "bank"):
        _, token = client.service.store.keys.add(name, "label")
        headers = {"Idempotency-Key": "1", "Authorization": f"Bearer {token}"}
        answer = send(client, {"prediction": row["id"], "label": "parts"}, **headers)
        assert answer.json() == {"added": 1, "repeated": 0}
    labels, _ = client.service.store.outcomes.of(row["id"])
    assert {each.key for each in labels} == {key.id for key in client.service.store.keys.all()}


def test_a_prediction_that_is_not_there_is_named_and_nothing_is_recorded(client, ids):
    answer = send(
        client, {"prediction": ids[0], "label": "parts"}, {"prediction": "gone", "label": "parts"}
    )
    assert answer.status_code == 404
    assert_mentions(
        answer.json()["detail"], "prediction 'gone'", "not exist", "erased", "nothing", "recorded"
    )
    assert client.get(f"/v1/predictions/{ids[0]}").json()["labels"] == []


def test_a_label_that_is_no_class_is_refused_with_its_place_and_nothing_is_recorded(client, ids):
    key = {"Idempotency-Key": "x"}
    told = [{"prediction": ids[0], "label": "parts"}, {"prediction": ids[1], "label": "Parts "}]
    for headers in ({}, key):
        answer = send(client, *told, **headers)
        assert answer.status_code == 422
        assert_mentions(
            answer.json()["detail"],
            "outcomes[1].label",
            "'Parts '",
            "not a class",
            "bundle",
            "made",
            "prediction (closest: 'parts'; its classes are 'defect', 'parts', 'other')",
            "correct",
            'send "other"',
            "true",
            "nothing",
            "recorded",
        )
        assert answer.json()["errors"][0]["where"] == "outcomes[1].label"
    assert client.get(f"/v1/predictions/{ids[0]}").json()["labels"] == []
    told[1]["label"] = "parts"
    assert send(client, *told, **key).json() == {"added": 2, "repeated": 0}


def test_a_label_may_be_a_class_that_the_bundle_does_not_have_where_that_is_said(client, ids):
    told = [{"prediction": id, "label": "late", "other": True} for id in ids[:2]]
    told.append({"prediction": ids[2], "label": "parts", "other": True})
    assert send(client, *told).json() == {"added": 3, "repeated": 0}
    assert client.get(f"/v1/predictions/{ids[0]}").json()["labels"][0]["label"] == "late"


def test_of_several_labels_in_one_request_the_last_of_the_list_is_the_latest(client, ids):
    told = [{"prediction": ids[0], "outcome": f"step {i}"} for i in range(9)]
    told += [{"prediction": ids[0], "label": label} for label in ("parts", "defect")]
    send(client, *told, **{"Idempotency-Key": "x"})
    found = client.get(f"/v1/predictions/{ids[0]}").json()
    assert [each["label"] for each in found["labels"]] == ["parts", "defect"]
    assert [each["outcome"] for each in found["outcomes"]] == [f"step {i}" for i in range(9)]


def test_what_was_erased_since_it_was_told_is_said_to_be_gone(client):
    body = {"inputs": [{"logits": [9.0, 0.0, 0.0]}], "unit": "customer-17"}
    (row,) = client.post("/v1/predict", json=body).json()["predictions"]
    told, key = {"prediction": row["id"], "label": "parts"}, {"Idempotency-Key": "x"}
    assert send(client, told, **key).json()["added"] == 1
    client.post("/v1/units/erase", json={"unit": "customer-17"})
    answer = send(client, told, **key)
    assert answer.status_code == 404
    assert "or was erased" in answer.json()["detail"]


def test_too_many_and_too_little(client, ids):
    answer = send(client, *[{"prediction": ids[0], "label": "parts"}] * 51)
    assert answer.status_code == 413
    assert_mentions(answer.json()["detail"], "51 outcomes exceed", "limit of 50")
    answer = send(client, {"prediction": ids[0]})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["where"] == "outcomes[0]"
    assert send(client).status_code == 422
