"""`GET /v1/predictions/{id}`: what was asked, what was decided, and by which bundle."""

import shutil
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.serving.bundles import CLASSES, logits_bundle


def test_a_prediction_in_full(serving, logits_folder):
    client = serving(logits_folder)
    body = {"inputs": [{"logits": [0, 0, 0]}, {"logits": {"other": 0, "parts": 9, "defect": 0}}],
            "unit": "u", "use_case": "c", "branch": "b"}  # fmt: skip
    answer = client.post("/v1/predict", json=body).json()
    told = answer["predictions"][1]
    found = client.get(f"/v1/predictions/{told['id']}").json()
    assert {name: found[name] for name in told} == told
    assert found["logits"] == {"defect": 0.0, "parts": 9.0, "other": 0.0}
    assert list(found["logits"]) == list(CLASSES)
    assert found["input"] == {"logits": {"other": 0.0, "parts": 9.0, "defect": 0.0}}
    assert (found["unit"], found["use_case"], found["branch"]) == ("u", "c", "b")
    assert (found["request"], found["position"]) == (answer["request"], 1)
    assert found["bundle"] == answer["bundle"]
    assert (found["labels"], found["outcomes"]) == ([], [])
    assert found["latency_ms"] >= 0
    age = datetime.now(UTC) - datetime.fromisoformat(found["at"])
    assert timedelta(0) <= age < timedelta(minutes=10)


@pytest.mark.parametrize(
    "id", ["nowhere", "%00", "..%2F..%2Fetc%2Fpasswd", "'%20OR%201=1", "%ff", "x" * 3000]
)
def test_what_is_not_there(serving, logits_folder, id):
    answer = serving(logits_folder).get(f"/v1/predictions/{id}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.text) < 500


def test_it_is_told_in_the_classes_of_the_bundle_that_decided(serving, tmp_path):
    folder = logits_bundle(tmp_path / "b").path
    client = serving(folder)
    body = {"inputs": [{"logits": [9.0, 0.0, 0.0]}]}
    told = client.post("/v1/predict", json=body).json()
    shutil.rmtree(folder)
    logits_bundle(folder, "two classes")
    assert client.post("/v1/bundle/reload").json()["classes"] == ["no", "yes"]
    again = serving(folder)  # a process that never had the old bundle in memory
    for each in (client, again):
        found = each.get(f"/v1/predictions/{told['predictions'][0]['id']}").json()
        assert found["bundle"] == told["bundle"]
        assert found["probabilities"] == told["predictions"][0]["probabilities"]
