"""Whatever goes wrong is told in one sentence, as `application/problem+json`."""

import json
import logging

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import ClientDisconnect
from tests.sentences import assert_mentions

from calibrant.errors import BundleError, InputError, StoreError, StoreUnavailable
from calibrant.serving.http.problems import (
    PROBLEM_JSON,
    Problem,
    format_location,
    handle_problems,
    problem_response,
    validation_problem,
)


def told(answer):
    assert answer.headers["content-type"] == PROBLEM_JSON
    content = answer.json()
    assert content["type"] == "about:blank"
    assert content["status"] == answer.status_code
    assert content["detail"].endswith(".")
    assert "\n" not in content["detail"]
    return content


@pytest.fixture
def failing():
    """Answer what a route that raises makes of it."""

    def answer(error, **options):
        app = FastAPI()
        handle_problems(app)

        @app.get("/")
        async def route():
            raise error

        @app.get("/number/{n}")
        async def number(n: int):
            return n

        return TestClient(app, raise_server_exceptions=False, **options)

    return answer


def test_a_problem_is_the_answer_word_by_word():
    faults = [{"where": "inputs[0]", "message": "no"}]
    problem = Problem(429, "slow down.", headers={"Retry-After": "7"}, errors=faults)
    made = problem_response(problem)
    assert made.status_code == 429
    assert made.media_type == PROBLEM_JSON
    assert made.headers["retry-after"] == "7"
    assert json.loads(made.body) == {
        "type": "about:blank",
        "title": "Too Many Requests",
        "status": 429,
        "detail": "slow down.",
        "errors": faults,
    }


def test_a_problem_without_faults_names_none():
    assert "errors" not in json.loads(problem_response(Problem(404, "gone.")).body)


def test_a_place_is_cut_where_a_name_is_endless():
    assert format_location(("inputs", 0, "row", "x" * 5000)) == "inputs[0].row." + "x" * 100


def test_busy_says_when_to_come_again():
    problem = Problem.busy("later.")
    assert (problem.status, problem.headers) == (503, {"Retry-After": "1"})


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (Problem(409, "taken."), 409, "taken."),
        (ClientDisconnect(), 400, "the body is incomplete."),
        (InputError("logits must be finite."), 422, "logits must be finite."),
        (StoreUnavailable("secret-host is away."), 503, "the database is unavailable"),
        (StoreError("table x is damaged."), 500, "internal error"),
        (BundleError("file y is damaged."), 500, "internal error"),
        (ZeroDivisionError("kept for the log"), 500, "internal error"),
    ],
)
def test_every_failure_is_a_problem(failing, error, status, says):
    answer = failing(error).get("/")
    assert answer.status_code == status
    assert says in told(answer)["detail"]


def test_what_a_client_need_not_know_stays_in_the_log(failing, caplog):
    with caplog.at_level(logging.WARNING, logger="calibrant.serving"):
        away = failing(StoreUnavailable("db.internal:5432 refused.")).get("/")
        fault = failing(ZeroDivisionError("a line of ours")).get("/")
    assert away.headers["retry-after"] == "1"
    for hidden in ("db.internal", "a line of ours"):
        assert hidden not in away.text + fault.text
        assert hidden in caplog.text


def test_addresses_and_methods_that_are_not_there(failing):
    client = failing(Problem(404, "x."))
    gone = told(client.get("/v2/<script>"))
    assert gone["title"] == "Not Found"
    assert "does not exist" in gone["detail"]
    assert "'/v2/" in gone["detail"]
    wrong = client.delete("/")
    assert_mentions(told(wrong)["detail"], "DELETE", "not allowed")
    assert wrong.status_code == 405
    assert wrong.headers["allow"] == "GET"
    assert told(client.get("/number/x"))["status"] == 422


class _Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    n: int


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")
    inner: list[_Inner]


def refused(body):
    with pytest.raises(ValidationError) as caught:
        _Body.model_validate_json(body)
    return validation_problem(caught.value)


def test_faults_are_told_with_their_places():
    problem = refused('{"inner": [{"n": 1}, {"n": "x", "m": 2}, {}], "more": 1}')
    assert problem.status == 422
    assert [fault["where"] for fault in problem.errors] == [
        "inner[1].n",
        "inner[1].m",
        "inner[2].n",
        "more",
    ]
    assert problem.errors[1]["message"] == "unknown field"
    assert problem.errors[2]["message"] == "this field is required"
    assert problem.detail.startswith("inner[1].n: ")


def test_thousands_of_faults_are_told_as_twenty():
    assert len(refused(json.dumps({"inner": [{}] * 5000})).errors) == 20


def test_values_are_not_sent_back():
    problem = refused('{"inner": [{"n": "jane@example.org"}]}')
    assert "jane" not in json.dumps([problem.detail, problem.errors])


@pytest.mark.parametrize("body", [b"", b"{", b"{'a': 1}", b'{"inner": "\xff"}', b"\xff\xfe{\x00"])
def test_what_is_no_json_is_400(body):
    problem = refused(body)
    assert problem.status == 400
    assert problem.detail.startswith("the body is not valid UTF-8 JSON: ")


def test_a_place_of_a_long_name_is_cut_off():
    assert format_location(("x" * 5000, 3)) == "x" * 100 + "[3]"
    assert format_location(()) == ""
