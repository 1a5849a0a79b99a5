"""The list of predictions, each in full, with labels and outcomes, in a real browser."""

import pytest
from tests.web.console.made import STRANGE
from tests.web.console.watching import faults

pytestmark = pytest.mark.web

LIST = "/console/predictions"
DETAILED = {"act": "Acted as", "abstain": "Left to a person", "out_of_scope": "Out of scope"}


def address(prediction):
    return f"{LIST}/{prediction.id}"


def newest(service, **filters):
    return service.store.predictions.search(limit=1, **filters)[0]


def rows(page):
    return page.locator("table.log tbody tr")


def show(page):
    with page.expect_navigation():
        page.get_by_role("button", name="Show").click()


def test_filters_select_matches_and_pages_follow_each_other(at_home, local):
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
    assert "No predictions found" in page.locator("main").inner_text()
    assert rows(page).count() == 0
    assert faults(page) == []
    with page.expect_navigation():
        page.get_by_role("link", name="Drop").first.click()
    assert page.url == local.url + LIST
    assert rows(page).count() > 0


def test_an_invalid_filter_is_kept_with_its_error(at_home):
    with at_home.expecting(LIST, 422):
        page = at_home(f"{LIST}?min_score=high&decision=act")
    field = page.locator("#min_score")
    assert field.input_value() == "high"
    ids = field.get_attribute("aria-describedby").split()
    assert "from 0 to 1" in page.locator(f"#{ids[0]}").inner_text()
    assert faults(page) == []


@pytest.mark.smoke
def test_one_prediction_is_shown_in_full(at_home, local):
    page = at_home(LIST)
    for decision, words in DETAILED.items():
        prediction = newest(local, decision=decision)
        at_home.go(page, address(prediction))
        text = page.locator("main").inner_text()
        assert words in text
        assert (
            page.locator(".quoted-text").first.inner_text().split()
            == prediction.input["text"].split()
        )
        top = page.locator("table.classes tbody tr").first.inner_text()
        assert prediction.label in top
        assert f"{prediction.score:.3f}" in top
        if prediction.action is not None:
            assert f"Action: {prediction.action}" in text
    assert newest(local).input["text"] == STRANGE


def test_an_outcome_is_entered_kept_and_shown(at_home, local):
    prediction = newest(local, decision="abstain")
    page = at_home(address(prediction))
    page.get_by_label("Outcome", exact=True).fill("refunded")
    page.get_by_label("Number (optional)").fill("a lot")
    page.get_by_label("Text (optional)").fill("two\nlines")
    with at_home.expecting(address(prediction), 422), page.expect_navigation():
        page.get_by_role("button", name="Record the outcome").click()
    assert "Nothing was recorded" in page.get_by_role("alert").inner_text()
    assert page.get_by_label("Outcome", exact=True).input_value() == "refunded"
    assert page.get_by_label("Text (optional)").input_value() == "two\nlines"
    assert local.store.outcomes.of(prediction.id) == ((), ())
    assert faults(page) == []
    page.get_by_label("Number (optional)").fill("12.5")
    with page.expect_navigation():
        page.get_by_role("button", name="Record the outcome").click()
    assert "recorded" in page.get_by_role("status").inner_text()
    _, (outcome,) = local.store.outcomes.of(prediction.id)
    assert (outcome.name, outcome.value, outcome.text) == ("refunded", 12.5, "two\nlines")
    page.reload()  # sends nothing again
    assert len(local.store.outcomes.of(prediction.id)[1]) == 1
    assert "refunded: 12.5" in page.locator("#feedback").inner_text()


def test_an_unknown_prediction_has_a_page_with_a_link(at_home, local):
    for path in (f"{LIST}/01999999-0000-7000-8000-000000000000", f"{LIST}/nonsense"):
        with at_home.expecting(path, 404):
            page = at_home(path)
        assert "There is no prediction with this id" in page.locator("main").inner_text()
        assert faults(page) == []
    with page.expect_navigation():
        page.get_by_role("link", name="newest predictions").click()
    assert page.url == local.url + LIST


def test_a_key_without_the_label_role_has_no_form_and_cannot_send_one(abroad, guarded):
    prediction = newest(guarded, decision="act")
    page = abroad(address(prediction), role="predict")
    assert page.get_by_role("button", name="Record").count() == 0
    assert "role label or admin" in page.locator("#feedback").inner_text()
    before = guarded.store.counts()
    with abroad.expecting(address(prediction), 403):
        send(page, address(prediction), kind="label", label="0", once=prediction.id)
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
