"""The client: what it sends, what it sends again, and what it says when that does not help."""

import inspect
import json
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path

import numpy as np
import pytest
from tests.unit.serving.scripted import (
    BUNDLE,
    ROW,
    SERVED,
    answer,
    cut,
    dropped,
    good,
    problem,
    raw,
    scripted,
)

import calibrant
from calibrant.client import transport as client_transport
from calibrant.client.client import Client, encode_inputs, encode_outcomes
from calibrant.client.transport import RequestRefused
from calibrant.errors import InputError, ServiceError
from calibrant.serving.settings import Settings

KEY = "cal_abcdefghijkl_0123456789abcdef"


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("CALIBRANT_KEY", raising=False)


@pytest.fixture
def waits(monkeypatch):
    """Wait for nothing, and remember for how long it would have been."""
    asked = []
    real = client_transport._backoff

    def pause(attempt, after):
        asked.append((after, real(attempt, after)))
        return 0.0

    monkeypatch.setattr(client_transport, "_backoff", pause)
    return asked


@pytest.fixture
def server(waits):
    with scripted() as script:
        yield script


@pytest.fixture
def client(server):
    with Client(server.url) as made:
        yield made


def sent(server, place=-1):
    return json.loads(server.seen[place][3])


# --- what is sent and what comes back ---


def test_texts_go_out_and_predictions_come_back(server, client):
    server.always = good(answer(2, repeated=True))
    found = client.predict(texts=["it broke", "zu groß"], unit="17", use_case="returns", point=1)
    assert server.seen[0][:2] == ("POST", "/v1/predict")
    assert sent(server) == {
        "inputs": [{"text": "it broke"}, {"text": "zu groß"}],
        "unit": "17",
        "use_case": "returns",
        "point": 1,
    }
    assert [row.id for row in found.predictions] == ["id-0", "id-1"]
    row = found.predictions[0]
    assert {name: getattr(row, name) for name in ROW} == {**ROW, "id": "id-0"}
    assert (found.bundle.id, found.bundle.hash) == (BUNDLE["id"], BUNDLE["hash"])
    assert (found.request, found.repeated) == ("r", True)
    with pytest.raises(AttributeError):
        row.label = "other"


def test_values_of_numpy_become_plain(server, client):
    rows = [{"n": np.int64(3), "x": np.float32(0.5), "b": np.bool_(True), "gone": np.nan}]
    client.predict(rows=rows, point=np.int64(0))
    assert sent(server)["inputs"] == [{"row": {"n": 3, "x": 0.5, "b": True, "gone": None}}]
    assert sent(server)["point"] == 0
    server.always = good(answer(2))
    client.predict(texts=np.array(["a", "b"]))
    assert sent(server)["inputs"] == [{"text": "a"}, {"text": "b"}]


@pytest.mark.parametrize(
    "logits",
    [
        np.array([[0.5, -1.0]]),
        [[0.5, -1]],
        [(np.float64(0.5), -1.0)],
        [{"defect": 0.5, "other": np.float32(-1)}],
    ],
)
def test_logits_by_place_or_by_name(server, client, logits):
    client.predict(logits=logits)
    named = isinstance(logits[0], dict)
    wanted = {"defect": 0.5, "other": -1.0} if named else [0.5, -1.0]
    assert sent(server)["inputs"] == [{"logits": wanted}]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "exactly one of texts, rows and logits, got none of them"),
        ({"texts": ["a"], "rows": [{}]}, "got texts and rows"),
        ({"texts": "broken"}, r"write \['broken'\]"),
        ({"texts": []}, "texts is empty"),
        ({"texts": ["a", None]}, r"texts\[1\] must be a string, got NoneType"),
        ({"texts": [3]}, r"texts\[0\] must be a string, got int"),
        ({"texts": ["\ud800"]}, "unpaired surrogate"),
        ({"rows": {"a": [1]}}, "rows must be a list, got a dictionary"),
        ({"rows": ["a"]}, r"rows\[0\] must be a dictionary of columns, got str"),
        ({"rows": [{1: 2}]}, "column names must be strings"),
        ({"rows": [{"a": float("inf")}]}, r"rows\[0\]\['a'\] is inf"),
        ({"rows": [{"a": object()}]}, r"rows\[0\]\['a'\] must be a string, number"),
        ({"logits": [1.0, 2.0]}, r"logits\[0\] must be a list with one logit per class"),
        ({"logits": [[1.0, float("nan")]]}, r"logits\[0\]\[1\] must be a finite number"),
        ({"logits": [{"a": True}]}, r"logits\[0\]\['a'\] must be a finite number"),
        ({"logits": [[10**400]]}, r"logits\[0\]\[0\] must be a finite number"),
        ({"logits": [["1.5"]]}, r"logits\[0\]\[0\] must be a finite number, got '1.5'"),
        ({"logits": 5}, "logits must be a list, got int"),
        ({"texts": ["a"], "idempotency_key": "a b"}, "1 to 128 visible ASCII"),
        ({"texts": ["a"], "idempotency_key": ""}, "1 to 128 visible ASCII"),
        ({"texts": ["a"], "idempotency_key": "a\r\nX: y"}, "1 to 128 visible ASCII"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_it_is(server, client, given, words):
    with pytest.raises(InputError, match=words):
        client.predict(**given)
    assert server.seen == []


def test_a_frame_is_told_how_to_become_rows(client):
    class Frame:
        iloc = columns = None

    with pytest.raises(InputError, match=r"table.to_dict\('records'\)"):
        client.predict(rows=Frame())


def test_outcomes(server, client):
    server.always = good({"added": 2, "repeated": 1})
    found = client.outcomes(
        [
            {"prediction": "p1", "label": "defect", "source": None},
            {"prediction": "p2", "outcome": "refund", "value": np.float64(2.5)},
        ]
    )
    assert (found.added, found.repeated) == (2, 1)
    assert server.seen[0][:2] == ("POST", "/v1/outcomes")
    assert sent(server)["outcomes"] == [
        {"prediction": "p1", "label": "defect"},
        {"prediction": "p2", "outcome": "refund", "value": 2.5},
    ]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ({"prediction": "p"}, "needs 'prediction', and 'label', 'outcome'"),
        ({"label": "a"}, "needs 'prediction'"),
        ({"prediction": "p", "label": "a", "when": 3}, "unknown key 'when'"),
        ("p", "must be a dictionary"),
    ],
)
def test_outcomes_that_say_nothing(server, client, outcome, words):
    with pytest.raises(InputError, match=words):
        client.outcomes([outcome])
    assert server.seen == []


def test_the_bundle(server, client):
    server.always = good({**SERVED, "of_a_newer_version": 1})
    found = client.bundle()
    assert (found.name, found.classes, found.input) == ("returns", ("defect", "other"), "text")
    assert found.columns == {"numbers": (), "texts": ("message",)}
    assert found.points == (("Precision is at least 85 %.",),)
    assert found.loaded_at.utcoffset() is not None
    assert client.reload() == found
    assert [each[:2] for each in server.seen] == [
        ("GET", "/v1/bundle"),
        ("POST", "/v1/bundle/reload"),
    ]


def test_a_prediction_in_full(server, client):
    at = "2025-07-01T12:00:00.5+00:00"
    server.always = good(
        {
            **ROW, "at": at, "bundle": BUNDLE, "request": "r", "position": 0, "unit": "17",
            "use_case": None, "branch": None, "input": {"text": "it broke"}, "input_hash": "ff",
            "logits": {"defect": 1, "other": -1.5}, "latency_ms": 2,
            "labels": [{"id": "l", "at": at, "label": "other", "source": "agent"}],
            "outcomes": [{"id": "o", "at": at, "outcome": "refund", "value": 2, "text": None}],
        }
    )  # fmt: skip
    found = client.prediction("a/../b?c")
    assert server.seen[0][1] == "/v1/predictions/a%2F%2E%2E%2Fb%3Fc"
    assert (found.label, found.unit, found.latency_ms) == ("defect", "17", 2.0)
    assert found.logits == {"defect": 1.0, "other": -1.5}
    assert (found.labels[0].label, found.labels[0].at) == ("other", found.at)
    assert (found.outcomes[0].outcome, found.outcomes[0].value) == ("refund", 2)


@pytest.mark.parametrize("unit", ["17", "..", "a b/ü"])
def test_forget_names_one_unit_and_not_in_the_address(server, client, unit):
    server.always = good({"predictions": 3, "labels": 2, "outcomes": 1})
    found = client.forget(unit)
    method, path, headers, body = server.seen[0]
    assert (method, path) == ("POST", "/v1/units/erase")
    assert headers["Content-Type"] == "application/json"
    assert json.loads(body) == {"unit": unit}
    assert (found.predictions, found.labels, found.outcomes) == (3, 2, 1)


def test_forget_has_more_time_than_other_calls(server):
    def slow(handler):
        time.sleep(0.3)
        good({"predictions": 3, "labels": 2, "outcomes": 1})(handler)

    server.always = slow
    with Client(server.url, timeout=0.1, retries=0) as client:
        assert client.forget("17").predictions == 3
        with pytest.raises(ServiceError, match=r"did not respond within 0\.1 s"):
            client.reload()


def test_an_attempt_lasts_longer_than_the_service_itself_takes():
    """Or the client would hang up just before it hears that the service is busy."""
    default = inspect.signature(Client).parameters["timeout"].default
    assert default > 2 * Settings(Path()).timeout


@pytest.mark.parametrize("unit", ["", None, 17, "\ud800"])
def test_units_that_have_no_name(client, unit):
    with pytest.raises(InputError, match="unit "):
        client.forget(unit)


def test_ready_is_asked_once(server, client):
    server.steps = [good({"status": "ready"}), problem(503), dropped]
    assert [client.ready(), client.ready(), client.ready()] == [True, False, False]
    assert len(server.seen) == 3


# --- what is sent again ---


@pytest.mark.parametrize(
    "fault",
    [
        problem(503), problem(502), problem(504), problem(429), raw(b"<h1>", 502, "text/html"),
        dropped, cut, raw(b'{"predictions": [{'),
    ],
    ids=["503", "502", "504", "429", "proxy", "dropped", "cut", "garbled"],
)  # fmt: skip
def test_a_passing_fault_is_passed_over(server, client, waits, fault):
    server.steps = [fault, fault]
    assert client.predict(texts=["a"]).predictions[0].label == "defect"
    assert len(server.seen) == 3
    assert len(waits) == 2
    name = server.names[0]
    assert name
    assert server.names == [name] * 3  # so that it is on record once
    assert len({body for _, _, _, body in server.seen}) == 1


def test_an_answer_that_takes_too_long_is_asked_for_again(server):
    server.steps = [server.hang]
    with Client(server.url, timeout=1.0) as client:
        assert client.predict(texts=["a"]).request == "r"
    assert len(set(server.names)) == 1
    assert len(server.seen) == 2


def test_an_answer_without_an_end_is_given_up(server):
    def dribble(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        while not server.held.wait(0.02):
            handler.wfile.write(b" ")

    server.always = dribble
    with (
        Client(server.url, timeout=0.2, retries=0) as client,
        pytest.raises(ServiceError, match=r"did not respond within 0.2 s: increase timeout"),
    ):
        client.predict(texts=["a"])


def test_an_answer_of_any_size_does_not_fill_the_memory(server, client, monkeypatch):
    monkeypatch.setattr(client_transport, "_MAX_RESPONSE", 1000)
    server.always = raw(b"[" * 5000)
    with pytest.raises(ServiceError, match="exceeds 1,000 bytes"):
        client.bundle()


def test_calls_have_names_of_their_own_unless_they_are_given_one(server, client):
    client.predict(texts=["a"])
    client.predict(texts=["a"])
    client.predict(texts=["a"], idempotency_key="mine-1")
    server.always = good({"added": 1, "repeated": 0})
    client.outcomes([{"prediction": "p", "label": "a"}])
    assert len(set(server.names)) == 4
    assert server.names[2] == "mine-1"
    assert None not in server.names


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 413, 415, 422, 500])
def test_what_would_fail_again_is_sent_once(server, client, status):
    server.always = problem(status, "the sentence of the service.")
    kind = ServiceError if status == 500 else InputError
    with pytest.raises(kind, match="the sentence of the service"):
        client.predict(texts=["a"])
    assert len(server.seen) == 1


def test_waits_double_and_grow_by_what_the_service_asks(server, client, waits):
    date = formatdate(time.time() + 30, usegmt=True)
    server.steps = [
        problem(503, Retry_After="2"),
        problem(429, Retry_After=date),
        problem(503, Retry_After="soon"),
        dropped,
    ]
    client.predict(texts=["a"])
    asked = [after for after, _ in waits]
    assert (asked[0], asked[2], asked[3]) == (2.0, None, None)
    assert 25 < asked[1] <= 30
    own = [total - (after or 0.0) for after, total in waits]
    for wait, most in zip(own, (0.5, 1.0, 2.0, 4.0), strict=True):
        assert most / 2 <= wait <= most


def test_own_waits_are_bounded():
    assert max(client_transport._backoff(n, None) for n in range(100)) <= 8


def test_a_service_that_asks_for_too_long_is_not_waited_for(server, client, waits):
    server.always = problem(429, "the key allows 1 request an hour.", Retry_After="3600")
    with pytest.raises(ServiceError, match=r"retry after 3600 s.*: try again later"):
        client.predict(texts=["a"])
    assert waits == []


def test_retries_end(server):
    server.always = problem(503, "the database cannot be reached.")
    with (
        Client(server.url, retries=2) as client,
        pytest.raises(ServiceError) as caught,
    ):
        client.predict(texts=["a"])
    assert len(server.seen) == 3
    assert str(caught.value) == (
        f"{server.url} is not available (503: the database cannot be reached), tried 3 times: try "
        "again later."
    )
    assert caught.value.kind == "service"


def test_a_service_that_is_away(waits):
    with scripted() as script:
        pass  # its port is free again
    with (
        Client(script.url, retries=1) as client,
        pytest.raises(ServiceError, match=r"cannot be reached \(.*\), tried 2 times: check that"),
    ):
        client.predict(texts=["a"])
    assert Client(script.url).ready() is False


def test_a_way_that_is_not_secure_is_not_tried_again(server, waits):
    with (
        Client(server.url.replace("http:", "https:")) as client,
        pytest.raises(
            ServiceError, match=r"cannot be reached over https \(.*SSL.*\): check the addr"
        ),
    ):
        client.predict(texts=["a"])
    assert waits == []


def test_the_last_attempt_counts(server):
    server.steps = [dropped] * 4
    with Client(server.url) as client:
        assert client.predict(texts=["a"]).repeated is False
    assert len(server.seen) == 5


# --- sentences ---


def test_the_place_of_a_fault_is_told(server, client):
    errors = [{"where": f"inputs[{i}].text", "message": "too long"} for i in range(3)]
    server.always = problem(422, "inputs[0].text: too long.", errors)
    with pytest.raises(RequestRefused) as caught:
        client.predict(texts=["a", "b", "c"])
    assert str(caught.value) == "inputs[0].text: too long (and 2 more errors)."
    assert caught.value.status == 422
    assert caught.value.errors[2] == ("inputs[2].text", "too long")
    twin = pickle.loads(pickle.dumps(caught.value))
    assert (str(twin), twin.status) == (str(caught.value), 422)
    server.always = problem(422, "this is not right.", errors[:1])
    with pytest.raises(InputError, match=r"^inputs\[0\].text: this is not right\.$"):
        client.predict(texts=["a"])


def test_a_key_that_lacks_is_told_where_it_goes(server, client):
    server.always = problem(401, "this service requires a key.")
    with pytest.raises(InputError, match="requires a key: no key was sent; set CALIBRANT_KEY"):
        client.predict(texts=["a"])


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (raw(b"<html>", 200, "text/html"), r"not from a calibrant service \(200, text/html\)"),
        (raw(b"not here", 404, "text/plain"), r"not from a calibrant service \(404, text/plain\)"),
        (good({"detail": "Not Found"}, 404), "not from a calibrant service"),
        (
            raw(b"", 307, "text/plain", Location="http://b/"),
            "redirects to http://b/, where the key is",
        ),
        (raw(b"", 204, "text/plain"), "not from a calibrant service"),
        (good([1, 2]), "should be an object"),
        (good({}), "'predictions': Field required"),
        (good(answer(3)), "3 predictions for 1 inputs"),
        (
            good(answer(predictions=[{**ROW, "label": 5}])),
            r"'predictions.0.label': Input should be a valid string",
        ),
        (
            good(answer(predictions=[{**ROW, "probabilities": {"a": "b"}}])),
            r"'predictions.0.probabilities.a': Input should be a valid number",
        ),
        (good(answer(bundle=None)), "'bundle': Input should be an object"),
        (raw(b"boom", 500, "text/plain"), "failed .500: no reason given.: see its log"),
    ],
)
def test_nonsense_is_called_so(server, client, step, words):
    server.always = step
    with pytest.raises(ServiceError, match=words) as caught:
        client.predict(texts=["a"])
    assert server.url in str(caught.value)
    assert len(server.seen) == 1


def test_sentences_of_others_stay_one_clean_line(server, client):
    server.always = problem(422, "bad\r\n\x1b[31mred\x00 " + "x" * 5000)
    with pytest.raises(InputError) as caught:
        client.predict(texts=["a"])
    said = str(caught.value)
    assert said.startswith("bad [31mred xxx")
    assert len(said) < 500
    assert said.isprintable()


# --- keys and addresses ---


def test_the_key_is_sent_and_never_shown(server, monkeypatch):
    server.steps = [good(), problem(422, f"what is {KEY}?"), raw(b"", 500), dropped]
    shown = []
    with Client(server.url, KEY, retries=0) as client:
        client.predict(texts=["a"])
        shown += [repr(client), str(client)]
        for _ in range(3):
            with pytest.raises((InputError, ServiceError)) as caught:
                client.predict(texts=["a"])
            shown.append(str(caught.value))
    assert server.seen[0][2]["Authorization"] == f"Bearer {KEY}"
    assert not [said for said in shown if KEY in said]
    assert shown[2] == "what is (the key)?"
    with pytest.raises(InputError) as caught:
        Client(server.url, KEY + "\n")
    assert KEY not in str(caught.value)


def test_the_key_comes_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("CALIBRANT_KEY", KEY)
    for key, wanted in ((None, KEY), ("cal_other", "cal_other")):
        with Client(server.url, key) as client:
            client.predict(texts=["a"])
        assert server.seen[-1][2]["Authorization"] == f"Bearer {wanted}"
    monkeypatch.setenv("CALIBRANT_KEY", "")
    with Client(server.url) as client:
        client.predict(texts=["a"])
    assert "Authorization" not in server.seen[-1][2]


def test_a_key_on_an_open_way_is_warned_of():
    with pytest.warns(UserWarning, match="unencrypted") as caught:
        Client("http://models.example.org:8000", KEY).close()
    assert KEY not in str(caught[0].message)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://models.example.org", KEY),
        ("http://models.example.org", None),
        ("http://127.0.0.1:8000", KEY),
        ("http://localhost:8000", KEY),
        ("http://[::1]:8000", KEY),
    ],
)
def test_other_ways_are_not(url, key):
    with Client(url, key) as client:
        assert client.url == url


def test_no_proxy_stands_between_a_machine_and_itself(server, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with Client(server.url, retries=0) as client:
        assert client.predict(texts=["a"]).request == "r"


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000", "ftp://host", "http://", "http://host:99999", "http://host:x", "http://[::1",
        "http://ho st", "http://host/a/../b", "http://host/%2e%2e/b", "http://host/a%2fb",
        "http://host//a", "http://host\\a", "http://host?x=1", "http://host#x", "http://host/?",
        "http://host/v1", "http://host/v1/predict", "http://münchen.de", "file:///etc", "", None, 5,
        "http://a..b", "http://host\r\nX: y", "http://999.1.1.1", f"http://{'a' * 64}.de", "http://:80",
    ],
)  # fmt: skip
def test_addresses_that_are_none(url):
    with pytest.raises(InputError, match=r"^url "):
        Client(url)


@pytest.mark.parametrize(
    "url", ["http://me:secret@host", "http://me:secret@ho st", "x://a:secret@b"]
)
def test_a_password_in_an_address_is_refused_and_not_shown(url):
    with pytest.raises(InputError) as caught:
        Client(url)
    assert "secret" not in str(caught.value)


def test_a_service_may_be_below_a_path(server):
    with Client(f"{server.url}/models/returns/") as client:
        client.predict(texts=["a"])
    assert server.seen[0][1] == "/models/returns/v1/predict"


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": "5"},
        {"timeout": float("nan")},
        {"retries": -1},
        {"retries": 1.5},
        {"retries": 1000},
    ],
)
def test_options_that_make_no_sense(options):
    with pytest.raises(InputError, match=next(iter(options))):
        Client("http://127.0.0.1:8000", **options)


# --- threads and ends ---


def test_threads_may_share_a_client(server, client):
    def echo(handler):
        given = json.loads(handler.body)["inputs"]
        good(answer(predictions=[{**ROW, "id": each["text"]} for each in given]))(handler)

    server.always = echo
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: client.predict(texts=[str(i)]), range(200)))
    assert [answer.predictions[0].id for answer in found] == [str(i) for i in range(200)]


def test_a_closed_client_says_so(server):
    client = Client(server.url)
    client.close()
    client.close()
    for call in (client.ready, client.bundle):
        with pytest.raises(InputError, match="closed: create a new one"):
            call()


def test_closing_ends_a_wait(server, monkeypatch):
    started = threading.Event()
    monkeypatch.setattr(client_transport, "_backoff", lambda *a: started.set() or 60.0)
    server.always = problem(503)
    client = Client(server.url)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(client.bundle)
        assert started.wait(10)
        client.close()
        with pytest.raises(InputError, match="closed"):
            call.result(timeout=10)


def test_it_is_offered_at_the_top():
    assert calibrant.Client is Client


def test_the_extra_is_named_where_it_is_missing():
    code = (
        "import sys; sys.modules['httpx2'] = None\n"
        "import calibrant\n"
        "try: calibrant.Client\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "the client needs the optional extra 'serve': pip install 'calibrant[serve]'."
    )


def test_the_client_needs_no_server_parts():
    code = (
        "import sys; import calibrant.client.client\n"
        "print([m for m in ('fastapi', 'sqlalchemy', 'pydantic', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_example_of_encode_inputs():
    assert encode_inputs(None, [{"weight": 1.5, "fat": "low"}], None) == [
        {"row": {"weight": 1.5, "fat": "low"}}
    ]


def test_example_of_encode_outcomes():
    assert encode_outcomes([{"prediction": "0199d0f2", "label": "defect", "source": None}]) == [
        {"prediction": "0199d0f2", "label": "defect"}
    ]
