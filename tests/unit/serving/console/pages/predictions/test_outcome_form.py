"""Labels and outcomes entered by people: checked, written once, by those who may."""

import pytest
from tests.sentences import assert_mentions
from tests.unit.serving.console.conftest import log_in
from tests.unit.serving.console.predictions_log import Page, keep, look, make_prediction

from calibrant.serving.console.pages.predictions.outcome_form import read_outcome_form
from calibrant.store import new_id


@pytest.fixture
def client(serving, logits_folder):
    return serving(logits_folder)


@pytest.fixture
def id(client):
    (made_id,) = keep(client, make_prediction(client.service.slot.current.hash, unit="gone"))
    return made_id


def filled(client, id, kind="label", **fields):
    """Return a form of the prediction's page as a browser would send it."""
    page = look(client, f"/{id}")
    once = [each["value"] for each in page.all("input", name="once")]
    return {
        "csrf": page.field("csrf")["value"],
        "kind": kind,
        "once": once[kind == "outcome"],
        **fields,
    }


def send(client, id, data):
    return client.post(f"/console/predictions/{id}", data=data, follow_redirects=False)


def recorded_feedback(client, id):
    return client.service.store.outcomes.of(id)


def test_a_listed_class_is_recorded(client, id):
    answer = send(client, id, filled(client, id, label="1", source=" agent "))
    where = f"/console/predictions/{id}?done=label#feedback"
    assert (answer.status_code, answer.headers["location"]) == (303, where)
    (label,), outcomes = recorded_feedback(client, id)
    assert (label.label, label.source, label.key, outcomes) == ("parts", "agent", None, ())
    page = Page(client.get(where))
    assert "Label recorded." in page.text
    assert page.all("p", role="status")
    assert "parts, source: agent" in page.text


def test_another_class_is_recorded(client, id):
    send(client, id, filled(client, id, label="other", other=" not of the list "))
    (label,), _ = recorded_feedback(client, id)
    assert (label.label, label.source) == ("not of the list", None)


def test_a_listed_class_overrides_the_hidden_field(client, id):
    send(client, id, filled(client, id, label="0", other="ignored"))
    assert recorded_feedback(client, id)[0][0].label == "defect"


def test_an_outcome_is_recorded(client, id):
    form = filled(client, id, "outcome", outcome="refunded", value="12.5", text="two\r\nlines")
    answer = send(client, id, form)
    assert answer.headers["location"].endswith("?done=outcome#feedback")
    _, (outcome,) = recorded_feedback(client, id)
    assert (outcome.name, outcome.value, outcome.text) == ("refunded", 12.5, "two\nlines")
    assert "Outcome recorded." in Page(client.get(answer.headers["location"])).text


def test_an_outcome_needs_a_name_only(client, id):
    send(client, id, filled(client, id, "outcome", outcome="kept", value=" ", text=" \r\n"))
    _, (outcome,) = recorded_feedback(client, id)
    assert (outcome.value, outcome.text) == (None, None)


@pytest.mark.parametrize(
    "fields",
    [{"kind": "label", "label": "1"}, {"kind": "outcome", "outcome": "kept", "text": "a"}],
)
def test_a_double_click_records_once(client, id, fields):
    form = filled(client, id, **fields)
    answers = [send(client, id, form) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {303}
    assert sum(map(len, recorded_feedback(client, id))) == 1


def test_the_same_form_with_another_content_is_refused(client, id):
    form = filled(client, id, label="1")
    send(client, id, form)
    answer = send(client, id, {**form, "label": "2"})
    assert answer.status_code == 409
    assert_mentions(Page(answer).text, "already sent", "different content")
    assert [label.label for label in recorded_feedback(client, id)[0]] == ["parts"]
    send(client, id, filled(client, id, label="2"))  # a fresh page corrects it
    assert [label.label for label in recorded_feedback(client, id)[0]] == ["parts", "other"]


def test_the_key_is_recorded_and_others_may_not(guarded):
    (id,) = keep(guarded, make_prediction(guarded.service.slot.current.hash))
    for role in ("label", "admin"):
        log_in(guarded, guarded.tokens[role])
        assert send(guarded, id, filled(guarded, id, label="1")).status_code == 303
    keys = [label.key for label in recorded_feedback(guarded, id)[0]]
    assert keys == [guarded.keys[role].id for role in ("label", "admin")]
    form = filled(guarded, id, label="1")
    log_in(guarded, guarded.tokens["predict"])
    refused = send(guarded, id, form)
    assert refused.status_code == 403
    assert "nothing was changed" in Page(refused).text
    guarded.cookies.clear()
    assert send(guarded, id, form).status_code == 401
    assert len(recorded_feedback(guarded, id)[0]) == 2


@pytest.mark.parametrize("csrf", [None, "", "0" * 64, "é"])
def test_a_form_of_another_page_is_refused(client, id, csrf):
    form = filled(client, id, label="1")
    form.pop("csrf")
    answer = send(client, id, form if csrf is None else {**form, "csrf": csrf})
    assert answer.status_code == 403
    assert recorded_feedback(client, id) == ((), ())


WRONG = [
    ({"label": ""}, "label-label", "Choose the true class."),
    ({}, "label-label", "Choose the true class."),
    ({"label": "3"}, "label-label", "Choose the true class."),
    ({"label": "-1"}, "label-label", "Choose the true class."),
    ({"label": "٣"}, "label-label", "Choose the true class."),
    ({"label": "defect"}, "label-label", "Choose the true class."),
    ({"label": "other", "other": "  "}, "label-other", "Enter the name of the class."),
    ({"label": "other", "other": "x" * 201}, "label-other", "at most 200 characters"),
    ({"label": "other", "other": "a\x07b"}, "label-other", "Control characters are not allowed."),
    ({"label": "1", "source": "s" * 201}, "label-source", "at most 200 characters"),
    ({"label": "1", "source": "a\nb"}, "label-source", "Control characters are not allowed."),
    ({"kind": "outcome"}, "outcome-outcome", "Enter a name for the outcome"),
    ({"kind": "outcome", "outcome": "o" * 201}, "outcome-outcome", "at most 200 characters"),
    ({"kind": "outcome", "outcome": "a", "value": "12,5"}, "outcome-value", "Enter a number"),
    ({"kind": "outcome", "outcome": "a", "value": "nan"}, "outcome-value", "finite number"),
    ({"kind": "outcome", "outcome": "a", "value": "1e999"}, "outcome-value", "finite number"),
    ({"kind": "outcome", "outcome": "a", "text": "t" * 20_001}, "outcome-text", "at most 20000"),
    ({"kind": "outcome", "outcome": "a", "text": "a\0b"}, "outcome-text", "Control characters"),
]


@pytest.mark.parametrize(("fields", "where", "message"), WRONG)
def test_invalid_fields_are_reported_and_kept(client, id, fields, where, message):
    form = filled(client, id, **fields)
    page = Page(send(client, id, form))
    assert page.status == 422
    assert page.wrong(where)
    assert message in page.text
    assert "Nothing was recorded." in page.text
    for name in ("other", "source", "outcome", "value"):
        if name in fields:
            assert page.field(name)["value"] == fields[name]
    if fields.get("label") in ("1", "other"):
        assert page.all("option", value=fields["label"])[0].keys() >= {"selected"}
    assert recorded_feedback(client, id) == ((), ())
    assert page.all("input", name="once", value=form["once"])


def test_a_corrected_form_can_be_sent_again(client, id):
    form = filled(client, id, "outcome", outcome="", text="kept <b>text</b>")
    page = Page(send(client, id, form))
    assert "kept <b>text</b>" in page.text
    again = {**form, "outcome": "refunded"}
    assert send(client, id, again).status_code == 303
    assert recorded_feedback(client, id)[1][0].text == "kept <b>text</b>"


@pytest.mark.parametrize(
    "changed", [{"kind": "erase"}, {"kind": ""}, {"once": ""}, {"once": "x" * 36}]
)
def test_a_form_that_was_tampered_with(client, id, changed):
    answer = send(client, id, {**filled(client, id, label="1"), **changed})
    assert answer.status_code == 400
    assert recorded_feedback(client, id) == ((), ())


def test_erased_while_the_form_was_open(client, id):
    form = filled(client, id, label="1")
    client.service.store.forget("gone")
    page = Page(send(client, id, form))
    assert page.status == 404
    assert_mentions(page.text, "Nothing was recorded", "prediction no longer exists")
    assert page.all("a", href="/console/predictions")
    assert recorded_feedback(client, id) == ((), ())


def test_erased_between_the_check_and_the_record(client, id, monkeypatch):
    form = filled(client, id, label="1")
    store = client.service.store
    add = store.outcomes.add

    def late(*args, **more):
        store.forget("gone")
        return add(*args, **more)

    monkeypatch.setattr(store.outcomes, "add", late)
    page = Page(send(client, id, form))
    assert page.status == 404
    assert "Nothing was recorded" in page.text


def test_a_form_of_one_prediction_is_refused_for_another(client, id):
    (other,) = keep(client, make_prediction(client.service.slot.current.hash, 1))
    form = filled(client, id, label="1")
    send(client, id, form)
    assert send(client, other, form).status_code == 409
    assert recorded_feedback(client, other) == ((), ())


def test_an_unknown_prediction(client, id):
    assert send(client, new_id(), filled(client, id, label="1")).status_code == 404


def test_an_unknown_confirmation_is_ignored(client, id):
    page = look(client, f"/{id}", done="<script>")
    assert page.status == 200
    assert not page.all("p", role="status")


def test_example_of_read_outcome_form():
    once = "0199d0f2-7a3c-7c1e-9a51-3f2f6c1b8e77"
    fields = {"kind": "label", "label": "1", "once": once}
    assert dict(read_outcome_form(fields, "p1", ["no", "yes"]).content) == {
        "prediction": "p1",
        "label": "yes",
    }
    assert read_outcome_form({"kind": "label", "once": once}, "p1", ["no", "yes"]).errors == {
        "label": "Choose the true class."
    }
