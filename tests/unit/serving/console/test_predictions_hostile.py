"""Texts of customers and callers are shown as text."""

import pytest
from tests.unit.bundle.parts import temperature
from tests.unit.serving.console.conftest import csrf_of
from tests.unit.serving.console.predictions_log import START, Page, keep, look, make_prediction

from calibrant.bundle import pack
from calibrant.store import Label, Outcome

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' autofocus onfocus=alert(1) x='",
    "{{7*7}} ${7*7} {% raw %}",
    "javascript:alert(1)",
    "</title></textarea></select></style><svg onload=alert(1)>",
    "&lt;b&gt; &amp;amp; &#0;",
    "abc \u202e\u2066 txt.exe",
    "שלום עולם مرحبا",
    "👩‍👩‍👧‍👦 emoji 🏳️‍🌈",
    "a\u2028b\u2029c\ufeffd",
    "x" * 190,
]
KNOWN = {
    "a", "abbr", "b", "bdi", "body", "button", "code", "dd", "details", "div", "dl", "dt", "form",
    "h1", "h2", "h3", "head", "header", "html", "input", "label", "li", "link", "main", "meta",
    "nav", "option", "p", "section", "select", "small", "span", "summary", "table", "tbody", "td",
    "textarea", "th", "thead", "time", "title", "tr", "ul", "wbr",
}  # fmt: skip


@pytest.fixture
def client(serving, logits_folder):
    return serving(logits_folder)


def check(page):
    """Nothing but our own tags, no handlers, no address that runs."""
    assert {tag for tag, _ in page.tags} <= KNOWN
    for _, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("href", "action", "src"):
            assert attributes.get(name, "/").startswith(("/", "#", "data:,"))


def collapse_spaces(text):
    return " ".join(text.split())


@pytest.mark.parametrize("text", HOSTILE)
def test_inputs_and_names_are_shown_as_text(client, text):
    hash = client.service.slot.current.hash
    names = {"unit": text, "use_case": text, "branch": text, "acted_as": "defect", "action": text}
    acted = {"decision": "act", "operating_point": 0}
    ids = keep(
        client,
        make_prediction(hash, 0, **names, **acted, input={"text": text}, request=text),
        make_prediction(hash, 1, input={"row": {text: text}}),
        make_prediction(hash, 2, input={text: {"deep": text}}),
    )
    client.service.store.outcomes.add(
        [Outcome("o", START, ids[0], text, None, text, None)],
        [Label("a", START, ids[0], text, text, None)],
        other=["a"],
    )
    page = look(client)
    check(page)
    assert page.ids == ids[::-1]
    for id in ids:
        page = look(client, f"/{id}")
        assert page.status == 200
        check(page)
        assert collapse_spaces(text) in page.text
    assert look(client, unit=text).ids == [ids[0]]
    if text == text.strip():
        assert look(client, search=text).ids == [ids[0]]


def test_class_names_with_direction_marks_are_reported(serving, tmp_path, client):
    names = ("a\u202eb", "parts", "other")
    pack(tmp_path / "turning", classes=names, calibrator=temperature(2.0, classes=names))
    turning = serving(tmp_path / "turning", db=f"sqlite:///{tmp_path}/turning.db")
    notice = "Class names contain characters that change the reading direction (U+202E)"
    for each, there in ((client, False), (turning, True)):
        body = {"inputs": [{"logits": [9.0, 0.0, 0.0]}]}
        (row,) = each.post("/v1/predict", json=body).json()["predictions"]
        for path in ("", "/model", "/try", "/predictions", f"/predictions/{row['id']}"):
            page = each.get(f"/console{path}").text
            assert page.count(notice) == there, path
    for path in ("", f"/{row['id']}"):
        page = turning.get(f"/console/predictions{path}").text
        assert ">\u2068a\u202eb\u2069</option>" in page, path


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_typed_into_filters_is_shown_as_text(client, text):
    page = look(client, label=text, unit=text, use_case=text, search=f"-{text}")
    check(page)
    assert page.status == 200
    assert f"“{collapse_spaces(text)}”" in page.text
    assert page.field("unit")["value"] == text
    wrong = dict.fromkeys(("since", "until", "min_score", "max_score", "decision"), text)
    page = look(client, **wrong, bundle=text)
    check(page)
    assert page.status == 422
    assert all(page.field(n)["value"] == text for n in ("since", "until", "min_score", "max_score"))


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_typed_into_forms_is_shown_as_text(client, text):
    (id,) = keep(client, make_prediction(client.service.slot.current.hash))
    shown = client.get(f"/console/predictions/{id}")
    form = {"csrf": csrf_of(shown), "once": Page(shown).field("once")["value"]}
    outcome = {**form, "kind": "outcome", "outcome": text, "value": text, "text": text}
    page = Page(client.post(f"/console/predictions/{id}", data=outcome))
    check(page)
    assert page.status == 422
    assert page.field("value")["value"] == text
    assert collapse_spaces(text) in page.text
    label = {**form, "kind": "label", "label": text, "other": text, "source": text}
    page = Page(client.post(f"/console/predictions/{id}", data=label))
    check(page)
    assert page.status == 422
    assert page.field("other")["value"] == text
    check(look(client, f"/{'%3Cscript%3E'}{id}"))


def test_control_characters_and_directions_are_made_visible(client):
    hash = client.service.slot.current.hash
    text = "one \x01 bell \x07 escape \x1b[31m turned \u202e around"
    (id,) = keep(client, make_prediction(hash, input={"text": text}, branch="\u2067evil"))
    page = look(client, f"/{id}")
    assert "characters that change the reading direction (U+2067)" in page.text
    assert "one ␁ bell ␇ escape ␛[31m turned" in page.text
    assert "characters that change the reading direction (U+202E)" in page.text
    assert page.all("div", dir="auto")
    assert "one ␁ bell" in look(client).text


def test_names_of_classes_are_text_as_well(client):
    name = "<b>x</b>\"'"
    client.service.store.bundles.record(
        hash="e" * 64, name=name, classes=[name, "b", "c"], manifest={"format": 3}, at=START
    )
    acted = {"decision": "act", "acted_as": name, "operating_point": 0}
    (id,) = keep(client, make_prediction("e" * 64, label=name, **acted))
    for page in (look(client, label=name), look(client, f"/{id}")):
        check(page)
        assert name in page.text
    assert look(client, label=name).ids == [id]


def test_a_very_long_text_without_a_space(client):
    text = "W" * 20_000
    (id,) = keep(client, make_prediction(client.service.slot.current.hash, input={"text": text}))
    page = look(client, f"/{id}")
    assert text in page.text
    assert page.all("div", tabindex="0", role="region", dir="auto")  # it scrolls by keyboard too
    assert "W" * 120 not in look(client).text
    css = client.get(look(client).all("link", rel="stylesheet")[-1]["href"]).text
    assert "overflow-wrap: anywhere" in css
