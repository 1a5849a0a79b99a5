"""The Try it page: the answer of `/v1/predict` with its reasons, and nothing on record."""

import html
import re
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from tests.sentences import assert_mentions
from tests.unit.bundle.model_parts import TEXTS, text_scorer
from tests.unit.bundle.parts import point, temperature
from tests.unit.serving.bundles import logits_bundle
from tests.unit.serving.console.conftest import csrf_of, log_in

from calibrant.bundle import BundlePoint, pack
from calibrant.formatting import percent
from calibrant.serving.http.problems import Problem

HOSTILE = "</textarea><script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}"


def send(client, **fields):
    """Fill in the form as a browser does and send it."""
    csrf = csrf_of(client.get("/console/try"))
    form_fields = {name.replace("_", "-"): value for name, value in fields.items()}
    data = {"csrf": csrf, "bundle": client.service.slot.current.hash, **form_fields}
    return client.post("/console/try", data=data)


def seen(page):
    """Return what a reader sees."""
    main = page.text[page.text.index("<main") :].replace("<wbr>", "")
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", main)).split())


def predict(client, **input):
    """Return what `/v1/predict` answers."""
    return client.post("/v1/predict", json={"inputs": [input]}).json()["predictions"][0]


def on_record(client):
    file = client.service.settings.db.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT count(*) FROM predictions").fetchone()[0]


def same(page, answer):
    """Check that a page says what the service answers."""
    words = seen(page)
    top = percent(max(answer["probabilities"].values()))
    assert re.search(rf"Most probable: {answer['label']} , with a[a-z ]* of {top}", words)
    for name, prob in answer["probabilities"].items():
        assert f"{name} {percent(prob)}" in words
    headline = {
        "act": f"Act on “{answer['acted_as']}”",
        "clear": "Cleared",
        "abstain": "Left to a person.",
        "out_of_scope": "Left to a person: it is out of scope.",
        None: "No decision",
    }[answer["decision"]]
    assert re.search(r'id="decision"[^>]*>([^<]*)', page.text)[1].startswith(headline)


@pytest.mark.parametrize("text", [*TEXTS, "unknown words only", "ünïcode 🙂"])
def test_messages_are_answered_as_by_the_service(serving, text_folder, text):
    client = serving(text_folder)
    page = send(client, text=text)
    assert page.status_code == 200
    assert on_record(client) == 0
    same(page, predict(client, text=text))
    assert on_record(client) == 1  # a request is
    assert html.escape(text) in page.text  # the message stays in its field
    assert "It is not recorded." in page.text


@pytest.mark.parametrize("row", [(1.0, "top"), (8.0, "low"), (None, "Low"), (2.0, None)])
def test_rows_are_answered_as_by_the_service(serving, table_folder, row):
    client = serving(table_folder)
    typed = ["" if value is None else str(value) for value in row]
    page = send(client, value_0=typed[0], value_1=typed[1])
    assert page.status_code == 200
    assert on_record(client) == 0
    same(page, predict(client, row={"price": row[0], "shelf": row[1]}))


@pytest.mark.parametrize("kind", ["points", "no points", "no calibrator", "out of scope",
                                  "out of scope, no points"])  # fmt: skip
@pytest.mark.parametrize("logits", [[4.0, 0.0, -1.0], [0.5, 0.4, 0.3], [0.0, 3.5, 0.0]])
def test_logits_are_answered_as_by_the_service(serving, tmp_path, kind, logits):
    client = serving(logits_bundle(tmp_path / "b", kind).path)
    page = send(client, **{f"value_{i}": str(value) for i, value in enumerate(logits)})
    assert page.status_code == 200
    assert on_record(client) == 0
    same(page, predict(client, logits=logits))


@pytest.mark.parametrize("odds", [-3.0, 0.0, 3.0])
def test_bands_act_clear_and_leave_the_middle(serving, tmp_path, odds):
    client = serving(logits_bundle(tmp_path / "b", "two classes").path)
    page = send(client, value_0="0", value_1=str(odds))
    same(page, predict(client, logits=[0.0, odds]))
    assert ("Cleared of “yes”." in seen(page)) == (odds < 0)


def test_why_it_was_decided(serving, logits_folder):
    words = seen(send(serving(logits_folder), value_0="4", value_1="0", value_2="0"))
    prob = float(np.exp(2) / (np.exp(2) + 2))
    assert "Act on “defect”: refund." in words
    assert (
        f"Its decision score, the calibrated probability of “defect”, is {prob:.4g}, which reaches "
        "the threshold 0.75 of operating point 0, so it is acted on." in words
    )
    assert f"{prob - 0.75:.4f} above" in words
    assert "With a threshold above 0.7870, the bundle would leave it to a person instead." in words


def test_the_slider_has_both_outcomes_and_is_not_there_without_a_script(serving, logits_folder):
    page = send(serving(logits_folder), value_0="4", value_1="0", value_2="0")
    parts = re.findall(r'<div class="turn"[^>]*>', page.text)
    assert len(parts) == 1  # the other rule cannot change the decision
    assert " hidden " in parts[0]
    assert 'data-reached="1"' in parts[0]
    assert 'data-met="act on “defect” (refund)"' in parts[0]
    assert 'data-missed="leave it to a person"' in parts[0]
    assert re.search(r'<script type="module" src="/console/static/\w+/try_it.js">', page.text)


def test_one_operating_point_can_be_selected(serving, logits_folder):
    client = serving(logits_folder)
    form = client.get("/console/try")
    assert "only point 2: Class “defect”" in html.unescape(form.text)
    fields = {"value_0": "2.5", "value_1": "1", "value_2": "0"}
    assert "Left to a person." in seen(send(client, **fields))
    words = seen(send(client, **fields, point="2"))
    assert "Act on “defect”: refund." in words
    assert "Only operating point 2 was applied" in words
    assert send(client, **fields, point="3").status_code == 422


def test_out_of_scope_is_shown_as_in_serving(serving, tmp_path):
    client = serving(logits_bundle(tmp_path / "b", "out of scope").path)
    words = seen(send(client, value_0="1.5", value_1="0", value_2="0"))
    assert "Left to a person: it is out of scope." in words
    assert_mentions(words, "unlike the rows", "rule was fitted")
    assert "No threshold changes the decision" in words
    assert_mentions(words, "not applied", "row is out of scope")
    assert "It is in scope" in seen(send(client, value_0="5", value_1="0", value_2="0"))


def test_a_redacted_message_is_shown(serving, tmp_path):
    folder = pack(tmp_path / "b", scorer=text_scorer(redact=True)).path
    client = serving(folder)
    page = send(client, text="it came broken, write to jo@example.com <b>now</b>")
    assert "it came broken, write to _email_ &lt;b&gt;now&lt;/b&gt;" in page.text
    same(page, predict(client, text="it came broken, write to jo@example.com <b>now</b>"))
    assert "Text read by the model" not in send(client, text="it came broken").text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Enter a message"),
        ("a" * 201, "The text has 201 characters, at most 200 are allowed."),
        ("a\x01b", "Control characters"),
    ],
)
def test_a_message_that_is_refused_is_kept(serving, text_folder, text, message):
    page = send(serving(text_folder, max_text=200), text=text)
    assert page.status_code == 422
    field = re.search(r'<textarea id="text"([^>]*)>\n([^<]*)</textarea>', page.text)
    assert field[2] == text
    assert 'aria-invalid="true"' in field[1]
    described = re.search(r'aria-describedby="fault-text text-hint"', field[1])
    assert described
    assert message in re.search(r'id="fault-text">([^<]*)', page.text)[1]
    assert 'id="decision"' not in page.text


def test_faults_are_shown_at_their_fields(serving, table_folder):
    page = send(serving(table_folder), value_0="x<y", value_1="Middle")
    assert page.status_code == 422
    assert 'value="x&lt;y"' in page.text
    assert 'value="Middle"' in page.text
    for key in ("value-0", "value-1"):
        assert re.search(f'id="{key}"[^>]*aria-describedby="fault-{key} hint-{key}"', page.text)
        assert f'id="fault-{key}"' in page.text
        assert f'href="#{key}"' in page.text
    assert "2 fields are invalid" in page.text


def test_a_pasted_row_that_is_refused_is_kept(serving, table_folder):
    page = send(serving(table_folder), paste="1,2,<3>")
    assert page.status_code == 422
    assert "1,2,&lt;3&gt;</textarea>" in page.text
    assert "<details open>" in page.text
    assert "Expected 2 values" in page.text


def test_known_categories_are_offered(serving, table_folder):
    page = serving(table_folder).get("/console/try").text
    assert 'list="known-value-1"' in page
    assert '<option value="Low"></option><option value="Top"></option>' in page


@pytest.mark.parametrize("text", [HOSTILE, HOSTILE + "\x00", HOSTILE * 9])
def test_hostile_messages_are_text(serving, text_folder, text):
    page = send(serving(text_folder, max_text=400), text=text)
    assert "<script>alert" not in page.text
    assert "<img" not in page.text
    assert page.text.count("</textarea>") == 1
    assert "{{ 7*7 }}" in page.text


def test_hostile_names_of_classes_and_actions_are_text(serving, tmp_path):
    classes = (HOSTILE, "parts", "other")
    folder = pack(
        tmp_path / "b", calibrator=temperature(classes=classes), actions={HOSTILE: HOSTILE},
        points=[BundlePoint(point(HOSTILE, 0.5, classes=classes), "calibrated")],
    ).path  # fmt: skip
    page = send(serving(folder), value_0="5", value_1="0", value_2="0")
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert "<img" not in page.text
    assert "&lt;script&gt;alert(1)" in page.text


def test_many_classes_are_folded(serving, tmp_path):
    classes = [f"class {i}" for i in range(25)]
    folder = pack(tmp_path / "b", calibrator=temperature(classes=classes)).path
    page = send(serving(folder), **{f"value_{i}": str(-i) for i in range(25)})
    shares = [float(w) for w in re.findall(r'class="bar" style="width: ([\d.]+)%"', page.text)]
    assert len(shares) == 25
    assert shares == sorted(shares, reverse=True)
    assert "The other 15 classes" in page.text
    first, rest = page.text[page.text.index('id="probabilities"') :].split("The other 15")
    assert "class 9<" in first
    assert "class 10<" in rest


def test_very_many_classes_are_pasted(serving, tmp_path):
    classes = [f"class {i}" for i in range(120)]
    client = serving(pack(tmp_path / "b", calibrator=temperature(classes=classes)).path)
    form = client.get("/console/try").text
    assert 'name="value-0"' not in form
    assert "<details open>" in form
    page = send(client, paste=" ".join(f"{-i}," for i in range(119)) + "-119")
    assert page.status_code == 200
    assert "Most probable: class 0" in seen(page)


def test_another_bundle_in_between(serving, tmp_path):
    folder = logits_bundle(tmp_path / "b").path
    client = serving(folder)
    before = client.service.slot.current.hash
    logits_bundle(folder, warmth=3.0)
    client.service.reload()
    csrf = csrf_of(client.get("/console/try"))
    fields = {f"value-{i}": "1" for i in range(3)}
    page = client.post("/console/try", data={"csrf": csrf, "bundle": before, **fields})
    assert page.status_code == 409
    assert "The bundle has been replaced" in page.text
    assert client.service.slot.current.hash in page.text


def test_a_message_survives_another_bundle(serving, text_folder):
    client = serving(text_folder)
    assert send(client, text="it came broken", bundle="another").status_code == 200


def test_a_form_without_its_token_is_refused(serving, text_folder):
    client = serving(text_folder)
    client.get("/console/try")
    for data in ({"text": "a"}, {"text": "a", "csrf": "0" * 64}):
        assert client.post("/console/try", data=data).status_code == 403


def test_only_keys_that_may_predict_try(guarded):
    fields = {"value_0": "1", "value_1": "1", "value_2": "1"}
    for role, status in (("predict", 200), ("admin", 200)):
        log_in(guarded, guarded.tokens[role])
        assert send(guarded, **fields).status_code == status
    log_in(guarded, guarded.tokens["label"])
    page = guarded.get("/console/try")
    assert page.status_code == 200
    assert "Your key has the role label." in page.text
    assert "Score it" not in page.text
    data = {"csrf": csrf_of(page), "value-0": "1", "value-1": "1", "value-2": "1"}
    assert guarded.post("/console/try", data=data).status_code == 403


def test_a_model_that_takes_too_long(serving, logits_folder, monkeypatch):
    import threading

    from calibrant.serving.console.pages.try_it import route as try_it

    end, score_row = threading.Event(), try_it._score
    monkeypatch.setattr(try_it, "score", lambda queries: end.wait(60))
    # Only the model has this timeout: the pages around it wait for the store as usual.
    monkeypatch.setattr(try_it, "_score", lambda *args: score_row(*args[:-1], 0.2))
    page = send(serving(logits_folder), value_0="1", value_1="1", value_2="1")
    end.set()
    assert page.status_code == 503
    assert "The model did not answer within 0.2 s" in page.text
    assert page.headers["retry-after"] == Problem.busy("").headers["Retry-After"]


def test_a_row_that_the_calibrator_cannot_take(serving, logits_folder, monkeypatch):
    from calibrant.errors import InputError
    from calibrant.serving.console.pages.try_it import route as try_it

    def refused(queries):
        raise InputError("the calibrator gives no probability for row 0")

    monkeypatch.setattr(try_it, "score", refused)
    page = send(serving(logits_folder), value_0="17", value_1="1", value_2="1")
    assert page.status_code == 422
    assert "The calibrator gives no probability for row 0." in page.text
    assert 'value="17"' in page.text
