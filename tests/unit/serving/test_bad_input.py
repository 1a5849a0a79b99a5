"""Whatever is sent: a sentence with a 4xx, nothing on record that was not answered, and it goes on.

In process, and then on a real `calibrant serve`.
"""

import gzip
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager

import pytest
from fastapi.testclient import TestClient
from tests.sentences import assert_mentions
from tests.unit.serving.bundles import logits_bundle
from tests.unit.serving.raw_http import CLOSE, GOOD, answer, chunked, exchange, request

from calibrant.serving.app import make_app
from calibrant.serving.service import Service
from calibrant.serving.settings import Settings

JSON = {"Content-Type": "application/json"}
INTERNALS = re.compile(
    r"Traceback|pydantic|function-|should match pattern|sqlalchemy|/src/|0x[0-9a-f]{6}"
)
INPUTS = {
    "logits": {"logits": [9, 0, 0]},
    "text": {"text": "the zip broke"},
    "table": {"row": {"price": 1.5, "shelf": "Low"}},
}


@contextmanager
def serving(folder, db, **settings):
    service = Service(Settings(folder, db=str(db), device="cpu", max_wait=0.0, **settings))
    service.prepare()
    base = "http://127.0.0.1"
    with TestClient(make_app(service), base_url=base, raise_server_exceptions=False) as client:
        client.service = service
        yield client


@pytest.fixture(scope="module", params=INPUTS)
def every(request, tmp_path_factory, logits_folder, text_folder, table_folder):
    """A service for each kind of bundle."""
    folders = {"logits": logits_folder, "text": text_folder, "table": table_folder}
    with serving(folders[request.param], tmp_path_factory.mktemp("db") / "c.db") as client:
        client.good = {"inputs": [INPUTS[request.param]]}
        yield client


@pytest.fixture(scope="module")
def client(tmp_path_factory, logits_folder):
    """A service, for what does not reach its bundle."""
    with serving(logits_folder, tmp_path_factory.mktemp("db") / "c.db") as client:
        client.good = {"inputs": [INPUTS["logits"]]}
        yield client


@pytest.fixture(scope="module")
def locked(tmp_path_factory, logits_folder):
    """A service that needs keys, with one of each role and some that are no good."""
    with serving(logits_folder, tmp_path_factory.mktemp("db") / "c.db", need_key=True) as client:
        ring = client.service.store.keys
        client.keys = {role: ring.add(role, role)[1] for role in ("predict", "label", "admin")}
        yield client


def told(answer, *statuses):
    """Check that an answer is a problem as it should be, and return its sentence."""
    assert answer.status_code in statuses, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    content = answer.json()
    assert content["status"] == answer.status_code
    said = content["detail"]
    assert said.endswith(".")
    assert 10 < len(said) < 600
    assert not INTERNALS.search(answer.text)
    return said


@contextmanager
def unharmed(client):
    """Check that the block records nothing, and that the next request is answered and recorded."""
    before = client.service.store.predictions.count()
    yield
    assert client.service.store.predictions.count() == before
    if hasattr(client, "good"):
        assert client.post("/v1/predict", json=client.good).status_code == 200
        assert client.service.store.predictions.count() == before + 1


def refused(client, *statuses, path="/v1/predict", method="POST", **sent):
    """Send what must be refused, and return its sentence; the group checks the record."""
    return told(client.request(method, path, **sent), *statuses)


# Bodies -------------------------------------------------------------------------------------------

NOT_JSON = {
    "nothing": b"",
    "a space": b" ",
    "cut off": b'{"inputs": [{"te',
    "a brace": b"{",
    "100,000 brackets": b"[" * 100_000,
    "100,000 objects": b'{"a":' * 100_000,
    "brackets as a value": b'{"inputs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a comma too many": b'{"inputs": [],}',
    "single quotes": b"{'inputs': []}",
    "a comment": b'{"inputs": [] /* none */}',
    "more behind it": b'{"inputs": []} {}',
    "NUL behind it": b'{"inputs": []}\0',
    "a zero first": b'{"inputs": [{"logits": [01, 2, 3]}]}',
    "a number of 5,000 digits": b'{"inputs": [{"logits": [%s, 2, 3]}]}' % (b"9" * 5_000),
    "invalid UTF-8": b'{"inputs": [{"text": "\xff"}]}',
    "an overlong form": b'{"inputs": [{"text": "\xc0\xaf"}]}',
    "a surrogate in UTF-8": b'{"inputs": [{"text": "\xed\xa0\x80"}]}',
    "half a surrogate pair": b'{"inputs": [{"text": "\\ud800"}]}',
    "a control character": b'{"inputs": [{"text": "a\x01"}]}',
    "a byte order mark": b'\xef\xbb\xbf{"inputs": []}',
    "UTF-16": '{"inputs": []}'.encode("utf-16"),
    "UTF-32": '{"inputs": []}'.encode("utf-32"),
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(100),
}


@pytest.mark.parametrize("path", ["/v1/predict", "/v1/outcomes"])
def test_what_is_not_json(client, subtests, path):
    with unharmed(client):
        for name, content in NOT_JSON.items():
            with subtests.test(name):
                said = refused(client, 400, path=path, content=content, headers=JSON)
                assert_mentions(said, "body", "not valid UTF-8 JSON")


def inputs(given, more=""):
    return f'{{"inputs": [{given}]{more}}}'.encode()


WRONG = {
    "null": b"null",
    "a list": b"[]",
    "a text": b'"inputs"',
    "a number": b"1",
    "NaN": b"NaN",
    "nothing in it": b"{}",
    "null for inputs": b'{"inputs": null}',
    "no inputs": b'{"inputs": []}',
    "an object for inputs": b'{"inputs": {"text": "a"}}',
    "null as an input": inputs("null"),
    "a text as an input": inputs('"a"'),
    "an empty input": inputs("{}"),
    "an input of nulls": inputs('{"text": null, "row": null, "logits": null}'),
    "an input of all kinds": inputs('{"text": "a", "row": {}, "logits": []}'),
    "an unknown kind": inputs('{"image": "a"}'),
    "a wrong text": inputs('{"text": 1}'),
    "a wrong row": inputs('{"row": [1]}'),
    "wrong logits": inputs('{"logits": "1"}'),
    "NUL in a text": inputs('{"text": "a\\u0000"}'),
    "an escape in a text": inputs('{"text": "\\u001b[2J"}'),
    "NUL in a cell": inputs('{"row": {"price": 1, "shelf": "\\u0000"}}'),
    "NUL as a column": inputs('{"row": {"price": 1, "shelf": "a", "\\u0000": 1}}'),
    "a list as a cell": inputs('{"row": {"price": [1], "shelf": "a"}}'),
    "NaN as a cell": inputs('{"row": {"price": NaN, "shelf": "a"}}'),
    "1e999 as a cell": inputs('{"row": {"price": 1e999, "shelf": "a"}}'),
    "400 digits as a cell": inputs('{"row": {"price": %s, "shelf": "a"}}' % ("9" * 400)),
    "4,300 digits as a cell": inputs('{"row": {"price": %s, "shelf": "a"}}' % ("9" * 4_300)),
    "1e308 as a cell": inputs('{"row": {"price": 1e308, "shelf": "a"}}'),
    "a word as a number": inputs('{"row": {"price": "one", "shelf": "a"}}'),
    "true as a text": inputs('{"row": {"price": 1, "shelf": true}}'),
    "a column is missing": inputs('{"row": {"price": 1}}'),
    "a column twice": inputs('{"row": {"price": 1, "price": 2, "shelf": "a"}}'),
    "50,000 columns": inputs(json.dumps({"row": {str(i): i for i in range(50_000)}})),
    "a long column": inputs(json.dumps({"row": {"x" * 900_000: 1}})),
    "no logits": inputs('{"logits": []}'),
    "a logit too many": inputs('{"logits": [1, 2, 3, 4]}'),
    "50,000 logits by name": inputs(json.dumps({"logits": {str(i): i for i in range(50_000)}})),
    "null as a logit": inputs('{"logits": [null, 2, 3]}'),
    "true as a logit": inputs('{"logits": [true, 2, 3]}'),
    "a text as a logit": inputs('{"logits": ["1", 2, 3]}'),
    "NaN as a logit": inputs('{"logits": [NaN, 2, 3]}'),
    "-Infinity as a logit": inputs('{"logits": [-Infinity, 2, 3]}'),
    "400 digits as a logit": inputs('{"logits": [%s, 2, 3]}' % ("9" * 400)),
    "1e308 as a logit": inputs('{"logits": [1e308, 2, 3]}'),
    "an unknown class": inputs('{"logits": {"defect": 1, "parts": 2, "<b>": 3}}'),
    "a class twice": inputs('{"logits": {"defect": 1, "parts": 2, "other": 3, "other": 4}}'),
}  # fmt: skip


def test_what_says_nothing_that_a_bundle_reads(every, subtests):
    with unharmed(every):
        for name, content in WRONG.items():
            with subtests.test(name):
                said = refused(every, 422, content=content, headers=JSON)
                assert "<b>" not in said or "'<b>'" in said  # what is quoted is told to be so


NAMES = {
    "empty": '""',
    "a number": "17",
    "true": "true",
    "a list": "[]",
    "NUL": '"a\\u0000b"',
    "a line end": '"a\\nb"',
    "DEL": '"\\u007f"',
    "201 characters": json.dumps("x" * 201),
    "900,000 characters": json.dumps("x" * 900_000),
}


@pytest.mark.parametrize("field", ["unit", "use_case", "branch"])
def test_names_that_cannot_be_kept(client, subtests, field):
    with unharmed(client):
        for name, value in NAMES.items():
            with subtests.test(name):
                body = json.dumps(client.good)[:-1] + f', "{field}": {value}}}'
                assert refused(client, 422, content=body, headers=JSON).startswith(f"{field}: ")


POINTS = ["-1", "1001", "9", "1.5", "true", '"0"', "9" * 30, "[]", "1e3"]


def test_points_that_there_are_not(client, subtests):
    with unharmed(client):
        for point in POINTS:
            with subtests.test(point):
                body = json.dumps(client.good)[:-1] + f', "point": {point}}}'
                assert refused(client, 422, content=body, headers=JSON).startswith("point: ")


FIELDS = ['"colour": 1', '"Inputs": []', '"": null', '"x": ' + "[" * 100 + "]" * 100]


def test_fields_that_there_are_not(client, subtests):
    with unharmed(client):
        for more in FIELDS:
            with subtests.test(more):
                body = json.dumps(client.good)[:-1] + f", {more}}}"
                assert "unknown field" in refused(client, 422, content=body, headers=JSON)


def test_a_field_that_comes_twice(client):
    one = json.dumps(client.good)[1:-1]
    with unharmed(client):
        said = refused(client, 422, content=f"{{{one}, {one}}}", headers=JSON)
    assert_mentions(said, "duplicate name 'inputs'", "send it once")


HOSTILE = [
    "'; DROP TABLE predictions; --",
    "' OR '1'='1",
    "<script>alert(1)</script>",
    "../../../etc/passwd",
    "{{7*7}} ${jndi:ldap://x} %s%n%x",
    "‮gpj.exe​﻿ 😀 ﷽ ﾞ",
    " ",
    "\u0085\u2028\u2029",
    "😀" * 200,
]


def test_hostile_names_are_names(every, subtests):
    for name in HOSTILE:
        with subtests.test(name):
            body = {**every.good, "unit": name, "use_case": name, "branch": name}
            (row,) = every.post("/v1/predict", json=body).json()["predictions"]
            found = every.get(f"/v1/predictions/{row['id']}").json()
            assert (found["unit"], found["use_case"], found["branch"]) == (name, name, name)
            label = {
                "prediction": row["id"],
                "label": name,
                "source": name,
                "outcome": name,
                "text": name,
            }
            assert every.post("/v1/outcomes", json={"outcomes": [label]}).status_code == 422
            label["other"] = True
            assert every.post("/v1/outcomes", json={"outcomes": [label]}).json()["added"] == 2
            found = every.get(f"/v1/predictions/{row['id']}").json()
            assert found["labels"][0]["label"] == found["outcomes"][0]["text"] == name
            others = every.service.store.predictions.count() - 1
            assert every.service.store.forget(name).predictions == 1
            assert every.service.store.predictions.count() == others


OUTCOMES = {
    "nothing": {},
    "none": {"outcomes": []},
    "null": {"outcomes": [None]},
    "no prediction": {"outcomes": [{"label": "a"}]},
    "nothing told": {"outcomes": [{"prediction": "p"}]},
    "nulls": {"outcomes": [{"prediction": "p", "label": None, "outcome": None}]},
    "an empty label": {"outcomes": [{"prediction": "p", "label": ""}]},
    "a source without a label": {"outcomes": [{"prediction": "p", "outcome": "o", "source": "s"}]},
    "a value without an outcome": {"outcomes": [{"prediction": "p", "label": "l", "value": 1}]},
    "a wrong value": {"outcomes": [{"prediction": "p", "outcome": "o", "value": "1"}]},
    "400 digits": {"outcomes": [{"prediction": "p", "outcome": "o", "value": 10**400}]},
    "NUL": {"outcomes": [{"prediction": "p", "outcome": "o", "text": "\0"}]},
    "NUL for an id": {"outcomes": [{"prediction": "\0", "label": "l"}]},
    "a long text": {"outcomes": [{"prediction": "p", "outcome": "o", "text": "x" * 20_001}]},
    "an unknown field": {"outcomes": [{"prediction": "p", "label": "l", "colour": 1}]},
}


def test_outcomes_that_say_nothing(locked, subtests):
    headers = {"Authorization": f"Bearer {locked.keys['label']}"}
    with unharmed(locked):
        for name, body in OUTCOMES.items():
            with subtests.test(name):
                refused(locked, 422, path="/v1/outcomes", json=body, headers=headers)


def test_outcomes_of_nothing_are_recorded_for_none(client, subtests):
    (row,) = client.post("/v1/predict", json=client.good).json()["predictions"]
    with unharmed(client):
        for id in ("p", "../p", "'; DROP TABLE labels; --", "%00", "x" * 200):
            with subtests.test(id):
                rows = [{"prediction": row["id"], "label": "a"}, {"prediction": id, "label": "a"}]
                refused(client, 404, path="/v1/outcomes", json={"outcomes": rows})
                assert client.get(f"/v1/predictions/{row['id']}").json()["labels"] == []


# Sizes --------------------------------------------------------------------------------------------


def test_10_mb(client):
    with unharmed(client):
        said = refused(client, 413, content=b" " * 10_000_000, headers=JSON)
        assert "exceeds 1,048,576 bytes" in said
    with unharmed(client):
        parts = (b" " * 65_536 for _ in range(160))
        assert "exceeds" in refused(client, 413, content=parts, headers=JSON)


@pytest.mark.parametrize("n", [1_001, 15_000, 100_000])
def test_large_batches(every, n):
    body = b'{"inputs": [%s]}' % b",".join([json.dumps(every.good["inputs"][0]).encode()] * n)
    with unharmed(every):
        said = refused(every, 413, content=body, headers=JSON)
    assert "exceed the limit" in said or "exceeds" in said


def test_a_length_that_lies(client):
    body = json.dumps(client.good).encode()
    with unharmed(client):
        for length in ("99999999", "9" * 40):
            refused(client, 413, content=body, headers={**JSON, "Content-Length": length})


# Headers ------------------------------------------------------------------------------------------

KINDS = [
    None, "", "text/plain", "application/xml", "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x", "application/json, text/plain", "application/jsonp", "*/*",
]  # fmt: skip


@pytest.mark.parametrize("path", ["/v1/predict", "/v1/outcomes"])
def test_bodies_of_another_kind(client, subtests, path):
    body = json.dumps(client.good)
    with unharmed(client):
        for kind in KINDS:
            with subtests.test(f"{kind}"):
                headers = {} if kind is None else {"Content-Type": kind}
                said = refused(client, 415, path=path, content=body, headers=headers)
                assert "must be JSON" in said


def test_bodies_that_are_compressed(client, subtests):
    body = gzip.compress(json.dumps(client.good).encode())
    with unharmed(client):
        for encoding in ("gzip", "br", "deflate", "GZIP", "identity, gzip", "x"):
            with subtests.test(encoding):
                headers = {**JSON, "Content-Encoding": encoding}
                said = refused(client, 415, content=body, headers=headers)
                assert_mentions(said, "not be compressed")


@pytest.mark.parametrize("path", ["/v1/predict", "/v1/outcomes"])
def test_idempotency_keys_that_cannot_be_kept(client, subtests, path):
    body = json.dumps(client.good)
    with unharmed(client):
        for key in ("", "a b", "\t", "x" * 129, b"\xff", b"\xc3\xa9", "a\x7f"):
            with subtests.test(f"{key!r}"):
                headers = {**JSON, "Idempotency-Key": key}
                said = refused(client, 400, path=path, content=body, headers=headers)
                assert said.startswith("Idempotency-Key must be")


def test_odd_idempotency_keys_are_keys(client, subtests):
    for key in ("'--", "a:0", ":", "../..", "%00", "{}", "x" * 128, '"q"', "null"):
        with subtests.test(key):
            headers = {"Idempotency-Key": key}
            before = client.service.store.predictions.count()
            found = [
                client.post("/v1/predict", json=client.good, headers=headers) for _ in range(3)
            ]
            assert [each.json()["repeated"] for each in found] == [False, True, True]
            other = {**client.good, "unit": "another"}
            told(client.post("/v1/predict", json=other, headers=headers), 409)
            assert client.service.store.predictions.count() == before + 1


def test_headers_that_say_two_things(client, subtests):
    names = ["Authorization", "Idempotency-Key", "Content-Type", "Content-Encoding", "Host"]
    with unharmed(client):
        for name in names:
            with subtests.test(name):
                headers = [*JSON.items(), (name, "application/json"), (name, "127.0.0.1")]
                said = refused(client, 400, content=json.dumps(client.good), headers=headers)
                assert_mentions(said, f"duplicate header {name.lower()}", "once")


def test_other_headers_may_come_twice(client):
    headers = [*JSON.items(), ("Accept", "a/b"), ("Accept", "*/*"), ("X-Forwarded-For", "1.2.3.4")]
    body = json.dumps(client.good)
    assert client.post("/v1/predict", content=body, headers=headers).status_code == 200


FOREIGN_HOSTS = [
    "example.org", "[::1]example.org", "localhost:80:example.org", "localhost@example.org",
    "localhost.example.org", "127.0.0.1.example.org", "[::1", "]", "", "a b", "0.0.0.0", "%00",
]  # fmt: skip


def test_hosts_that_are_not_this_one(client, subtests):
    with unharmed(client):
        for host in FOREIGN_HOSTS:
            with subtests.test(f"{host!r}"):
                headers = {**JSON, "Host": host}
                refused(client, 421, content=json.dumps(client.good), headers=headers)


ODD_HOSTS = ["[::1", "a/b?c#d", "]", "", "x y", "x" * 3_000, "u:p@h", "h:99999"]


@pytest.mark.parametrize("path", ["/nothing", "/v1/bundle", "/v1/predictions/x"])
def test_odd_hosts_of_a_service_with_keys(locked, subtests, path):
    for host in ODD_HOSTS:
        with subtests.test(f"{host!r}"):
            told(locked.get(path, headers={"Host": host}), 401, 404)


@pytest.mark.parametrize("origin", ["https://example.org", "null", "http://localhost.example.org"])
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/bundle/reload"), ("GET", "/v1/bundle"), ("DELETE", "/v1/units/a")],
)
def test_pages_of_other_addresses_may_not_use_a_local_service(client, method, path, origin):
    with unharmed(client):
        refused(client, 403, method=method, path=path, headers={"Origin": origin})
    same = client.request(method, path, headers={"Origin": "http://127.0.0.1:8000"})
    assert same.status_code == 200
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    before = client.options("/v1/predict", headers=asked)  # a browser asks before it sends JSON
    assert not before.is_success
    assert "access-control-allow-origin" not in before.headers


# Keys ---------------------------------------------------------------------------------------------

ROUTES = {
    ("POST", "/v1/predict"): {"predict", "admin"},
    ("POST", "/v1/outcomes"): {"label", "admin"},
    ("GET", "/v1/predictions/x"): {"predict", "label", "admin"},
    ("GET", "/v1/bundle"): {"predict", "label", "admin"},
    ("POST", "/v1/bundle/reload"): {"admin"},
    ("POST", "/v1/units/erase"): {"admin"},
    ("DELETE", "/v1/units/x"): {"admin"},
    ("GET", "/metrics"): {"predict", "label", "admin"},
}


def test_every_route_is_known_here(locked):
    described = locked.get("/openapi.json").json()["paths"]
    known = {(method.upper(), path) for path, methods in described.items() for method in methods}
    named = {(method, re.sub(r"\{\w+\}", "x", path)) for method, path in known}
    assert named - {("GET", "/healthz"), ("GET", "/readyz")} == set(ROUTES)


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_roles(locked, route):
    for role, token in locked.keys.items():
        answer = locked.request(*route, headers={"Authorization": f"Bearer {token}"})
        if role in ROUTES[route]:
            assert answer.status_code in (200, 404, 415), role
        else:
            assert f"has role {role!r}" in told(answer, 403)
    assert "requires a key" in told(locked.request(*route), 401)


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_keys_that_are_no_good(locked, route):
    ring, good = locked.service.store.keys, locked.keys["admin"]
    revoked, token = ring.add("gone", "admin")
    ring.revoke(revoked.id)
    other = good.replace(good[4:16], ring.add("other", "admin")[0].id)  # its id, another's secret
    given = [
        "", "Bearer", "Bearer ", f"Bearer {token}", f"Bearer {good[:-1]}", f"Bearer {good}0",
        f"Bearer {good.upper()}", f"Bearer {other}", f"Bearer {good},{good}", f"Basic {good}", good,
        "Basic YWRtaW46YWRtaW4=", "Bearer null", "Bearer ' OR 1=1 --", "Bearer cal_%00_",
        f"Bearer cal_{'0' * 12}_{'0' * 64}", "Bearer " + "x" * 5_000, b"Bearer \xff\xfe",
    ]  # fmt: skip
    for each in given:
        answer = locked.request(*route, headers={"Authorization": each})
        told(answer, 401)
        assert answer.headers["www-authenticate"] == "Bearer"
    assert locked.service.store.predictions.count() == 0


def test_a_wrong_key_is_refused_where_none_is_needed_too(client):
    headers = {"Authorization": "Bearer cal_x"}
    with unharmed(client):
        refused(client, 401, json=client.good, headers=headers)


@pytest.mark.parametrize("rate", [1e-9, 5e-324])
def test_however_low_a_rate_is_a_client_is_told_when_to_come_again(locked, rate):
    token = locked.service.store.keys.add("slow", "admin", rate=rate)[1]
    headers = {"Authorization": f"Bearer {token}"}
    assert locked.get("/v1/bundle", headers=headers).status_code == 200
    answer = locked.get("/v1/bundle", headers=headers)
    assert "slow down" in told(answer, 429)
    assert answer.headers["retry-after"] == "86400"


# Addresses ----------------------------------------------------------------------------------------

UNKNOWN_IDS = [
    "x", "%00", "%ff", "..%2f..%2fetc%2fpasswd", "%2e%2e", "a%0d%0aX-B:%20c", "%F0%9F%98%80",
    "'%20OR%201=1%20--", "%ed%a0%80", "%25", "x" * 5_000, "<script>",
]  # fmt: skip


def test_predictions_that_there_are_not(client, subtests):
    with unharmed(client):
        for id in UNKNOWN_IDS:
            with subtests.test(id):
                refused(client, 404, method="GET", path=f"/v1/predictions/{id}")


def test_units_that_cannot_be(client, subtests):
    with unharmed(client):
        for unit in ("", "%00", "a%00", "%0a", "%7f", "x" * 201):
            with subtests.test(f"{unit!r}"):
                refused(client, 404, method="DELETE", path=f"/v1/units/{unit}")


UNITS = [
    b"{}", b'{"unit": null}', b'{"unit": ""}', b'{"unit": "\\u0000"}', b'{"unit": ["a"]}',
    b'{"unit": "a", "unit": "b"}', b'{"unit": "a", "x": 1}', b"[]",
]  # fmt: skip


def test_units_that_cannot_be_named(client, subtests):
    with unharmed(client):
        for body in UNITS:
            with subtests.test(f"{body!r}"):
                refused(client, 422, path="/v1/units/erase", content=body, headers=JSON)


def test_units_that_are_nobody_erase_nothing(client, subtests):
    with unharmed(client):
        for unit in ("..%2f..", "'%20OR%20'1'='1", "%25", "a/b", "*", "%ff", "_"):
            with subtests.test(unit):
                assert client.delete(f"/v1/units/{unit}").json()["predictions"] == 0


UNKNOWN_PATHS = [
    "/", "/v1", "/v1/", "/V1/bundle", "/v1/bundle/", "/v1/bundle;a=b", "/%2e%2e/%2e%2e/etc/passwd",
    "/v1/predict/", "/.git/config", "/admin", "/redoc", "/docs/oauth2-redirect", "/v1/%00",
]  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "POST", "TRACE", "PROPFIND"])
def test_addresses_that_there_are_not(client, subtests, method):
    with unharmed(client):
        for path in UNKNOWN_PATHS:
            with subtests.test(path):
                assert "does not exist" in refused(client, 404, path=path, method=method)


@pytest.mark.parametrize("path", ["/v1/predict", "/v1/outcomes", "/v1/bundle", "/metrics"])
def test_methods_that_are_not_for_an_address(client, subtests, path):
    for method in ("HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "STEAL"):
        with subtests.test(method):
            answer = client.request(method, path, json=client.good)
            assert answer.status_code == 405
            assert answer.headers["allow"] in ("POST", "GET")
            if method != "HEAD":
                told(answer, 405)


def test_the_page_for_people_loads_nothing(client):
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "<script" not in page.text
    assert re.findall(r'(?:src|href)="(?!#)([^"]*)"', page.text) == ["data:,", "/openapi.json"]
    assert "http://" not in page.text
    assert "https://" not in page.text
    anchors = set(re.findall(r'href="#([^"]*)"', page.text))
    assert anchors <= set(re.findall(r'id="([^"]*)"', page.text))
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in page.text


# Bundles ------------------------------------------------------------------------------------------


def _write(text):
    return lambda folder: (folder / "manifest.json").write_bytes(text)


def _without(name):
    return lambda folder: (folder / name).unlink()


def _other(field, value):
    def change(folder):
        content = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps({**content, field: value}))

    return change


def _pipe(name):
    def change(folder):
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return change


TAMPERED = {
    "empty": _write(b""),
    "noise": _write(bytes(range(256))),
    "null": _write(b"null"),
    "brackets": _write(b"[" * 100_000),
    "NaN": _write(b'{"format": NaN}'),
    "another format": _other("format", 99),
    "other classes": _other("classes", ["a", "b"]),
    "another hash": _other("sha256", "0" * 64),
    "no hash": _other("sha256", None),
    "a file elsewhere": _other("files", {"../../etc/passwd": "0" * 64}),
    "a manifest less": _without("manifest.json"),
    "a file less": _without("card.md"),
    "a longer file": lambda folder: (folder / "card.md").write_text("x"),
    "a pipe for a manifest": _pipe("manifest.json"),
    "a pipe for a file": _pipe("card.md"),
    "no folder": shutil.rmtree,
}


@pytest.fixture(scope="module")
def tampered(tmp_path_factory):
    """A service whose bundle is changed under it."""
    folder = tmp_path_factory.mktemp("bundle") / "returns"
    logits_bundle(folder)
    with serving(folder, tmp_path_factory.mktemp("db") / "c.db") as client:
        client.folder = folder
        client.good = {"inputs": [INPUTS["logits"]]}
        yield client


@pytest.mark.parametrize("name", TAMPERED)
def test_a_bundle_that_was_tampered_with_is_refused(tampered, tmp_path, name):
    kept = shutil.copytree(tampered.folder, tmp_path / "kept")
    hash = tampered.get("/v1/bundle").json()["hash"]
    try:
        TAMPERED[name](tampered.folder)
        with unharmed(tampered):
            said = refused(tampered, 409, path="/v1/bundle/reload")
        assert_mentions(said, "folder", "refused", "old bundle stays")
        found = tampered.get("/v1/bundle").json()
        assert found["hash"] == hash
        assert found["refused"]
    finally:
        shutil.rmtree(tampered.folder, ignore_errors=True)
        shutil.copytree(kept, tampered.folder)
    assert tampered.post("/v1/bundle/reload").json()["refused"] is None


# Databases ----------------------------------------------------------------------------------------


def _of_another(path):
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE predictions (a)")


SWAPPED = {
    "a text": lambda path: path.write_text("hello " * 1_000),
    "nothing in it": lambda path: path.touch(),
    "a folder": lambda path: path.mkdir(),
    "the file of another program": _of_another,
    "none": lambda path: None,
}


@pytest.mark.parametrize("name", SWAPPED)
def test_something_else_in_the_place_of_the_database(logits_folder, tmp_path, name):
    good = {"inputs": [INPUTS["logits"]]}
    with serving(logits_folder, tmp_path / "c.db") as client:
        (row,) = client.post("/v1/predict", json=good).json()["predictions"]
        away = tmp_path / "away"
        away.mkdir()
        for file in tmp_path.glob("c.db*"):
            file.rename(away / file.name)
        SWAPPED[name](tmp_path / "c.db")
        label = {"outcomes": [{"prediction": row["id"], "label": "defect"}]}
        for _ in range(2):
            for answer in (
                client.post("/v1/predict", json=good),
                client.post("/v1/outcomes", json=label),
                client.get(f"/v1/predictions/{row['id']}"),
                client.post("/v1/units/erase", json={"unit": "a"}),
                client.get("/readyz"),
            ):
                told(answer, 503)
                assert answer.headers["retry-after"] == "1"
        shutil.rmtree(tmp_path / "c.db", ignore_errors=True)
        for file in tmp_path.glob("c.db*"):
            file.unlink()
        for file in away.iterdir():
            file.rename(tmp_path / file.name)
        answers = [client.post("/v1/predict", json=good).status_code for _ in range(3)]
        assert answers[1:] == [200, 200]  # the first may find that the file is another one again
        assert client.service.store.predictions.count() == 1 + answers.count(200)


# A process ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def process(tmp_path_factory, logits_folder):
    """`calibrant serve`, which is told to stop at the end and has nothing to complain of."""
    folder = tmp_path_factory.mktemp("process")
    words = ["serve", logits_folder, "--db", folder / "c.db", "--port", "0", "--json"]
    with (folder / "log").open("w") as log:
        made = subprocess.Popen(
            [sys.executable, "-m", "calibrant", *map(str, words)],
            stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
    try:
        said = ""
        while not said.endswith("}\n"):
            line = made.stdout.readline()
            assert line, (folder / "log").read_text()
            said += line
        made.port = int(json.loads(said)["url"].rpartition(":")[2])
        yield made
        made.send_signal(signal.SIGTERM)
        assert made.wait(60) == 0
        assert "Traceback" not in (folder / "log").read_text()
    finally:
        made.kill()
        made.wait()
        made.stdout.close()


def test_a_process_goes_on_whatever_is_sent(process):
    port = process.port
    sent = [(400, request(body, CLOSE)) for body in NOT_JSON.values()]
    sent += [(422, request(body, CLOSE)) for body in WRONG.values()]
    sent += [
        (413, request(b" " * 10_000_000, CLOSE)),
        (413, request(b"", b"Transfer-Encoding: chunked\r\n" + CLOSE, length=b"")
         + chunked(b" " * 10_000_000)),
        (413, request(GOOD, CLOSE, length=b"99999999")),
        (415, request(gzip.compress(GOOD), b"Content-Encoding: gzip\r\n" + CLOSE)),
        (400, request(GOOD, b"Authorization: Bearer a\r\n" * 2 + CLOSE)),
        (401, request(GOOD, b"Authorization: Basic YTpi\r\n" + CLOSE)),
        (404, request(b"", CLOSE, method=b"GET", path=b"/v1/predictions/..%2f..%2f%00")),
        (404, request(b"", CLOSE, path=b"/../../etc/passwd")),
        (405, request(b"", CLOSE, method=b"TRACE")),
        (400, b"\x00" * 1_000),
        (400, request(GOOD, b"Transfer-Encoding: chunked\r\n" + CLOSE)),
        (431, b"GET /" + b"a" * 300_000),
    ]  # fmt: skip
    for status, data in sent:
        found, content = answer(port, data)
        assert found == status, content
        assert not INTERNALS.search(json.dumps(content))
    exchange(port, request(length=b"500"), half=True)
    for n in range(2):
        status, content = answer(port, request(GOOD, b"Idempotency-Key: once\r\n" + CLOSE))
        assert (status, content["repeated"]) == (200, n == 1)
