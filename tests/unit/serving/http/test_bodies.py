"""Bodies are checked for their type first, then for their size, then for what they say."""

import asyncio

import pytest
from fastapi import Request
from starlette.requests import ClientDisconnect
from tests.sentences import assert_mentions

from calibrant.client.messages import PredictBody
from calibrant.serving.http.bodies import parse_body, read_body, read_idempotency_key
from calibrant.serving.http.problems import Problem

JSON = {"content-type": "application/json"}


def request(headers, *parts, gone=False):
    """Return a request whose body comes in parts; `read` counts those that were taken."""
    waiting = [
        {"type": "http.request", "body": part, "more_body": i < len(parts) - 1 or gone}
        for i, part in enumerate(parts)
    ]
    if gone:
        waiting.append({"type": "http.disconnect"})

    async def receive():
        return waiting.pop(0)

    raw = [(k.encode(), v.encode("latin-1")) for k, v in headers.items()]
    made = Request({"type": "http", "method": "POST", "headers": raw}, receive)
    return made, waiting


def body_of(made, limit):
    return read_body(made.headers, made.receive, limit)


def read(headers, *parts, limit=10):
    return asyncio.run(body_of(request(headers, *parts)[0], limit))


def refused(status, call, *args, **kwargs):
    with pytest.raises(Problem) as caught:
        call(*args, **kwargs)
    assert caught.value.status == status
    return caught.value


def test_a_body_is_read_whole_up_to_the_limit():
    assert read(JSON, b"0123456789") == b"0123456789"
    assert read(JSON, b"01234", b"", b"56789") == b"0123456789"
    assert read(JSON, b"") == b""


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "Application/JSON", "application/json;"]
)
def test_ways_to_say_json(kind):
    assert read({"content-type": kind}, b"{}") == b"{}"


@pytest.mark.parametrize(
    "headers",
    [{}, *({"content-type": kind} for kind in ("text/plain", "application/jsonp", "json", ""))],
)
def test_another_type_is_415(headers):
    problem = refused(415, read, headers, b"{}")
    assert_mentions(problem.detail, "Content-Type", "application/json")


def test_a_body_that_is_announced_too_large_is_not_read():
    made, waiting = request({**JSON, "content-length": "11"}, b"01234567890")
    problem = refused(413, asyncio.run, body_of(made, 10))
    assert "exceeds 10 bytes" in problem.detail
    assert len(waiting) == 1


@pytest.mark.parametrize("announced", ["9" * 5000, "00000000000000000000000000000099"])
def test_no_number_is_too_long(announced):
    made, _ = request({**JSON, "content-length": announced}, b"01234567890")
    refused(413, asyncio.run, body_of(made, 10))


@pytest.mark.parametrize("announced", ["5", "-1", "x", "²"])
def test_what_is_sent_counts_whatever_was_announced(announced):
    made, waiting = request({**JSON, "content-length": announced}, b"012345", b"678901", b"more")
    refused(413, asyncio.run, body_of(made, 10))
    assert len(waiting) == 1  # the rest was not waited for


def test_a_body_is_understood_or_its_fault_is_told():
    assert parse_body(b'{"inputs": [{"text": "a"}]}', PredictBody).inputs[0].text == "a"
    assert refused(400, parse_body, b"nonsense", PredictBody).errors == []
    problem = refused(422, parse_body, b'{"inputs": [{"text": 1}]}', PredictBody)
    assert problem.errors[0]["where"] == "inputs[0].text"


def test_a_name_that_comes_twice_among_very_many_is_found_in_one_pass():
    row = ",".join(f'"{i}":1' for i in [*range(100_000), 99_999])
    problem = refused(422, parse_body, f'{{"inputs":[{{"row":{{{row}}}}}]}}'.encode(), PredictBody)
    assert "duplicate name '99999'" in problem.detail


def test_a_key_for_retries_is_visible_ascii():
    assert read_idempotency_key({}) is None
    for good in ("a", "a" * 128, "018f:~!x/y"):
        assert read_idempotency_key({"idempotency-key": good}) == good
    for bad in ("", "a" * 129, "a b", "ü", "a\tb"):
        refused(400, read_idempotency_key, {"idempotency-key": bad})


def test_a_client_that_goes_away_while_it_sends_is_no_body():
    made, _ = request(JSON, b"01", gone=True)
    with pytest.raises(ClientDisconnect):
        asyncio.run(body_of(made, 10))
