"""`/v1/bundle`: what serves, what it promises, and why a newer one does not."""

import shutil
from datetime import datetime

import pytest
from tests.unit.serving.bundles import logits_bundle

PROMISE = "Precision is at least 85 % for class '{}', with 95 % confidence."


@pytest.fixture
def folder(tmp_path):
    return logits_bundle(tmp_path / "returns").path


def test_a_bundle_without_a_model(serving, folder):
    client = serving(folder)
    found = client.get("/v1/bundle").json()
    served = client.service.slot.current
    assert datetime.fromisoformat(found.pop("loaded_at")) == served.loaded_at
    assert found == {
        "id": served.hash[:12],
        "hash": served.hash,
        "name": "returns",
        "classes": ["defect", "parts", "other"],
        "input": "logits",
        "columns": {"numbers": ["logit_defect", "logit_parts", "logit_other"], "texts": []},
        "points": [[PROMISE.format(name)] for name in ("defect", "parts", "defect")],
        "rules": [rule.to_dict() for rule in served.bundle.decision_rules],
        "actions": {"defect": "refund", "parts": "send part"},
        "gives_reasons": False,
        "refused": None,
    }
    assert [(rule["class"], rule["alternative"]) for rule in found["rules"]] == [
        ("defect", False),
        ("parts", False),
        ("defect", True),
    ]


def test_bundles_with_a_model_say_what_they_read(serving, text_folder, table_folder):
    found = serving(text_folder).get("/v1/bundle").json()
    assert (found["input"], found["columns"]) == ("text", {"numbers": [], "texts": ["message"]})
    found = serving(table_folder).get("/v1/bundle").json()
    assert (found["input"], found["columns"]) == (
        "table",
        {"numbers": ["price"], "texts": ["shelf"]},
    )


def test_a_newer_bundle_is_loaded_when_it_is_asked_for(serving, folder, tmp_path):
    client = serving(folder)
    before = client.get("/v1/bundle").json()
    assert client.post("/v1/bundle/reload").json() == before
    newer = logits_bundle(tmp_path / "newer", "no points")
    shutil.rmtree(folder)
    shutil.copytree(newer.path, folder)
    found = client.post("/v1/bundle/reload").json()
    assert found["hash"] == newer.manifest["sha256"] != before["hash"]
    assert client.get("/v1/bundle").json() == found
    assert found["points"] == []


def test_a_damaged_one_is_refused_and_said(serving, folder):
    client = serving(folder)
    before = client.get("/v1/bundle").json()
    (folder / "card.md").write_text("forged")
    answer = client.post("/v1/bundle/reload")
    assert answer.status_code == 409
    detail = answer.json()["detail"]
    assert detail.startswith("the folder was refused, and the old bundle stays: ")
    found = client.get("/v1/bundle").json()
    assert found["refused"] in detail
    assert {**found, "refused": None} == before
    body = {"inputs": [{"logits": [9.0, 0.0, 0.0]}]}
    assert client.post("/v1/predict", json=body).json()["bundle"]["hash"] == before["hash"]
    assert "calibrant_bundle_refused 1.0" in client.get("/metrics").text
