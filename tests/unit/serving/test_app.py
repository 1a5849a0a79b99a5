"""The application: its description, its pages, and its life."""

import json

import pytest
from pydantic import TypeAdapter

from calibrant.client.messages import OutcomesBody, PredictBody
from calibrant.distribution import own_version
from calibrant.serving.app import SETTINGS, app_from_environment


@pytest.fixture
def client(serving, logits_folder):
    return serving(logits_folder)


@pytest.fixture
def described(client):
    return client.get("/openapi.json").json()


def test_it_says_what_it_is(described):
    assert described["info"]["title"] == "Calibrant"
    assert described["info"]["version"] == own_version()
    assert described["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    for path, methods in described["paths"].items():
        for route in methods.values():
            assert route["summary"], path
            assert route["description"], path


def references(content):
    if isinstance(content, dict):
        yield from ([content["$ref"]] if "$ref" in content else [])
        content = list(content.values())
    if isinstance(content, list):
        for each in content:
            yield from references(each)


def test_all_that_it_refers_to_is_there(described):
    found = set(references(described))
    names = {f"#/components/schemas/{name}" for name in described["components"]["schemas"]}
    assert found == names
    assert "#/components/schemas/PredictBody" in found
    assert not any("ValidationError" in name for name in names)


def test_bodies_are_described_with_examples_that_are_good(described):
    for path, message in (("/v1/predict", PredictBody), ("/v1/outcomes", OutcomesBody)):
        body = described["paths"][path]["post"]["requestBody"]
        assert body["required"] is True
        assert list(body["content"]) == ["application/json"]
        schema = described["components"]["schemas"][message.__name__]
        message.model_validate(schema["example"])
        assert schema["additionalProperties"] is False


def test_problems_are_described_as_problems(described):
    for methods in described["paths"].values():
        for route in methods.values():
            for status, answer in route["responses"].items():
                if status != "200":
                    assert list(answer["content"]) == ["application/problem+json"]


def test_answers_are_what_is_described(client, described):
    from calibrant.client import messages

    body = {"inputs": [{"logits": [9.0, 0.0, 0.0]}]}
    answer = client.post("/v1/predict", json=body).content
    TypeAdapter(messages.PredictAnswer).validate_json(answer)
    id = json.loads(answer)["predictions"][0]["id"]
    found = client.get(f"/v1/predictions/{id}").content
    TypeAdapter(messages.PredictionAnswer).validate_json(found)
    problem = client.post("/v1/predict", json={}).content
    TypeAdapter(messages.ProblemAnswer).validate_json(problem)


def test_there_are_pages_for_people(client):
    assert client.get("/docs").headers["content-type"].startswith("text/html")


def test_a_worker_process_takes_its_settings_from_the_environment(client, monkeypatch):
    monkeypatch.setenv(SETTINGS, client.service.settings.to_json())
    service = app_from_environment().state.service
    assert service.settings == client.service.settings
    assert service.slot.current.hash == client.service.slot.current.hash


def test_a_service_ends_with_its_application(serving, logits_folder):
    client = serving(logits_folder)
    assert client.service.draining is False
    client.__exit__(None, None, None)
    assert client.service.draining is True
    client.__enter__()  # for the fixture, which leaves it again
