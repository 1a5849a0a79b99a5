"""The list of predictions, each in full, and what people enter about them, in a real browser."""

import pytest
from tests.web.console.made import STRANGE
from tests.web.console.watching import faults

pytestmark = pytest.mark.web

LIST = "/console/predictions"
DETAILED = {"act": "Acted as", "abstain": "Left to a person", "out_of_scope": "Out of scope"}


def address(found):
    return f"{LIST}/{found.id}"


def newest(service, **filters):
    return service.store.predictions.search(limit=1, **filters)[0]


def rows(page):
    return page.locator("table.log tbody tr")


def show(page):
    with page.expect_navigation():
        page.get_by_role("button", name="Show").click()


def test_filters_find_what_they_say_and_pages_follow_each_other(at_home, local):
    page = at_home(LIST)
    page.get_by_label("Decision").select_option("act")
    page.get_by_label("Class", exact=True).select_option("others")
    show(page)
    expected = local.store.predictions.search(decision="act", label="others", limit=1000)
    seen = []
    while True:
        links = rows(page).locator("a").evaluate_all("all => all.map(el => el.pathname)")
        seen += links
        assert all("others" in text for text in rows(page).all_inner_texts())
        older = page.get_by_role("link", name="Older predictions")
        if not older.count():
            break
        with page.expect_navigation():
            older.click()
    assert seen == [address(each) for each in expected]
    page.get_by_role("link", name="Drop all filters").first.click()
    page.wait_for_url(local.url + LIST)


def test_a_filter_that_matches_nothing_says_so_and_can_be_dropped(at_home, local):
    page = at_home(f"{LIST}?use_case=none-such")
    assert "No prediction was found" in page.locator("main").inner_text()
    assert rows(page).count() == 0
    assert faults(page) == []
    with page.expect_navigation():
        page.get_by_role("link", name="Drop").first.click()
    assert page.url == local.url + LIST
    assert rows(page).count() > 0


def test_a_filter_that_is_nonsense_is_kept_with_a_sentence_beside_it(at_home):
    with at_home.expecting(LIST, 422):
        page = at_home(f"{LIST}?min_score=high&decision=act")
    field = page.locator("#min_score")
    assert field.input_value() == "high"
    told = field.get_attribute("aria-describedby").split()
    assert "from 0 to 1" in page.locator(f"#{told[0]}").inner_text()
    assert faults(page) == []


def test_one_prediction_is_shown_in_full(at_home, local):
    page = at_home(LIST)
    for decision, words in DETAILED.items():
        found = newest(local, decision=decision)
        at_home.go(page, address(found))
        text = page.locator("main").inner_text()
        assert words in text
        assert page.locator(".said").first.inner_text().split() == found.input["text"].split()
        top = page.locator("table.classes tbody tr").first.inner_text()
        assert found.label in top
        assert f"{found.score:.3f}" in top
        if found.action is not None:
            assert f"Action: {found.action}" in text
    assert newest(local).input["text"] == STRANGE


def test_an_outcome_is_entered_kept_and_shown(at_home, local):
    found = newest(local, decision="abstain")
    page = at_home(address(found))
    page.get_by_label("What happened").fill("refunded")
    page.get_by_label("Number (optional)").fill("a lot")
    page.get_by_label("Text (optional)").fill("two\nlines")
    with at_home.expecting(address(found), 422), page.expect_navigation():
        page.get_by_role("button", name="Record the outcome").click()
    assert "Nothing was recorded" in page.get_by_role("alert").inner_text()
    assert page.get_by_label("What happened").input_value() == "refunded"
    assert page.get_by_label("Text (optional)").input_value() == "two\nlines"
    assert local.store.outcomes.of(found.id) == ((), ())
    assert faults(page) == []
    page.get_by_label("Number (optional)").fill("12.5")
    with page.expect_navigation():
        page.get_by_role("button", name="Record the outcome").click()
    assert "on record" in page.get_by_role("status").inner_text()
    _, (outcome,) = local.store.outcomes.of(found.id)
    assert (outcome.name, outcome.value, outcome.text) == ("refunded", 12.5, "two\nlines")
    page.reload()  # sends nothing again
    assert len(local.store.outcomes.of(found.id)[1]) == 1
    assert "refunded: 12.5" in page.locator("#told").inner_text()


def test_an_unknown_prediction_is_a_page_that_leads_on(at_home, local):
    for path in (f"{LIST}/01999999-0000-7000-8000-000000000000", f"{LIST}/nonsense"):
        with at_home.expecting(path, 404):
            page = at_home(path)
        assert "There is no prediction of this id" in page.locator("main").inner_text()
        assert faults(page) == []
    with page.expect_navigation():
        page.get_by_role("link", name="newest predictions").click()
    assert page.url == local.url + LIST


def test_a_key_that_may_not_label_has_no_form_and_cannot_send_one(abroad, guarded):
    found = newest(guarded, decision="act")
    page = abroad(address(found), role="predict")
    assert page.get_by_role("button", name="Record").count() == 0
    assert "role label or admin" in page.locator("#told").inner_text()
    before = guarded.store.counts()
    with abroad.expecting(address(found), 403):
        send(page, address(found), kind="label", label="0", once=found.id)
    assert "nothing was changed" in page.locator("main").inner_text()
    assert guarded.store.counts() == before


def send(page, path, **fields):
    """Send a form that the page does not have, with the visitor's own token."""
    with page.expect_navigation():
        page.evaluate(
            """([path, fields]) => {
              const form = document.createElement("form");
              Object.assign(form, { method: "post", action: path });
              fields.csrf = document.querySelector("[name=csrf]").value;
              for (const [name, value] of Object.entries(fields)) {
                const input = document.createElement("input");
                Object.assign(input, { name, value });
                form.append(input);
              }
              document.body.append(form);
              form.submit();
            }""",
            [path, fields],
        )
