"""Untrusted text stays text in a real browser, wherever a page shows it."""

import pytest
from tests.web.console.made import predict
from tests.web.console.watching import faults

pytestmark = pytest.mark.web

RAN = "document.title='ran'"
HOSTILE = (
    f"<script>{RAN}</script>",
    f'"><img src=x onerror="{RAN}"><b class=injected>',
    f"' autofocus onfocus={RAN} x='",
    f"</textarea></script><svg onload={RAN}><p class=injected>",
    f"{{{{ 7 * 7 }}}} {{% set x = 1 %}} ${{{RAN}}}",
    f"javascript:{RAN}//&lt;b class=injected&gt;",
    "\u202e<p class=injected>\u2066right to left",
    "W" * 3000,
)


def untouched(page):
    """Require that no part of a text became markup, and that the page still fits the screen."""
    assert page.locator(".injected, img, [onerror], [onload], [onfocus]").count() == 0
    assert "ran" not in page.title().split()
    assert page.evaluate("document.activeElement.tagName") in ("BODY", "INPUT", "TEXTAREA", "A")
    assert faults(page) == []


@pytest.fixture(scope="module")
def prediction_ids(local):
    """Send every text, as the message and as the names around it."""
    ids = []
    for text in HOSTILE:
        names = dict.fromkeys(("unit", "use_case", "branch"), text[:100])
        (one,) = predict(local, [text], **names)
        ids.append(one["id"])
    return ids


def test_the_list_shows_it_as_text(at_home, prediction_ids):
    page = at_home("/console/predictions", width=390)
    untouched(page)
    text = page.locator("table.log").inner_text()
    for hostile in HOSTILE[:6]:
        assert hostile[:40] in text


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_of_a_prediction_shows_it_as_text(at_home, prediction_ids, width):
    page = at_home("/console/try", width=width)
    for id, hostile in zip(prediction_ids, HOSTILE, strict=True):
        at_home.go(page, f"/console/predictions/{id}")
        untouched(page)
        assert page.locator(".quoted-text").first.inner_text() == hostile


def test_try_it_shows_it_as_text(at_home):
    page = at_home("/console/try", width=390)
    for hostile in HOSTILE:
        page.get_by_label("Message").fill(hostile)
        with page.expect_navigation():
            page.get_by_role("button", name="Score it").click()
        assert page.get_by_label("Message").input_value() == hostile
        untouched(page)


def test_labels_and_outcomes_stay_text(at_home, local, prediction_ids):
    page = at_home(f"/console/predictions/{prediction_ids[0]}")
    for hostile in HOSTILE[:4]:
        page.get_by_label("Outcome", exact=True).fill(hostile[:100])
        page.get_by_label("Text (optional)").fill(hostile)
        with page.expect_navigation():
            page.get_by_role("button", name="Record the outcome").click()
        untouched(page)
        assert hostile in page.locator("#feedback").inner_text()


def test_filters_and_names_of_keys_stay_text(abroad, guarded):
    _, token = guarded.store.keys.add(HOSTILE[1], "predict")
    guarded.keys["hostile"] = token
    page = abroad("/console/predictions", role="hostile")
    assert HOSTILE[1] in page.locator(".who").inner_text()
    for name in ("use_case", "unit", "label", "search"):
        page.goto(f"{guarded.url}/console/predictions")
        page.evaluate(
            "([name, value]) => { location.search = new URLSearchParams({ [name]: value }) }",
            [name, HOSTILE[1]],
        )
        page.wait_for_url("**?*")
        untouched(page)
        assert HOSTILE[1] in page.locator("main").inner_text()
