"""A whole task without a mouse: log in, find a prediction, enter its true class, log out."""

import pytest

pytestmark = pytest.mark.web

MOST = 60  # presses until something has to be reached
FOCUSED = """() => {
  const el = document.activeElement, style = getComputedStyle(el);
  const words = (el.labels?.length ? el.labels[0] : el).textContent.trim().replace(/\\s+/g, " ");
  const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  const box = el.getBoundingClientRect();
  const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return { tag: el.tagName, words, ring, inside };
}"""


def tab_to(page, words, tag=None):
    """Press Tab until an element with these words has focus; every stop must be visible."""
    stops = []
    for _ in range(MOST):
        page.keyboard.press("Tab")
        at = page.evaluate(FOCUSED)
        stops.append(at["words"])
        if at["tag"] == "BODY":
            continue
        assert at["ring"], f"no ring around {at}"
        assert at["inside"], f"out of sight: {at}"
        if words in at["words"] and tag in (None, at["tag"]):
            return
    raise AssertionError(f"{words!r} cannot be reached by Tab: {stops}")


def enter(page):
    with page.expect_navigation():
        page.keyboard.press("Enter")


@pytest.mark.parametrize("width", [390, 1280])
def test_a_label_is_entered_by_keyboard_alone(abroad, guarded, width):
    page = abroad("/console/predictions", width=width)
    page.wait_for_function("document.activeElement.id === 'key'")  # by itself
    page.keyboard.type(guarded.keys["label"])
    enter(page)
    page.keyboard.press("Tab")
    assert page.evaluate(FOCUSED)["words"] == "Skip to the content"
    tab_to(page, "Predictions", "A")
    enter(page)
    tab_to(page, "Decision", "SELECT")
    page.keyboard.type("left")
    tab_to(page, "Show", "BUTTON")
    enter(page)
    assert "decision=abstain" in page.url
    tab_to(page, "202", "A")  # the first of the list, by its time
    enter(page)
    id = page.url.rpartition("/")[2]
    before, _ = guarded.store.outcomes.of(id)
    tab_to(page, "True class", "SELECT")
    page.keyboard.type("missing")
    tab_to(page, "Record the true class", "BUTTON")
    enter(page)
    assert "Label recorded" in page.get_by_role("status").inner_text()
    after, _ = guarded.store.outcomes.of(id)
    assert [each.label for each in after] == [*(each.label for each in before), "missing_parts"]
    assert guarded.store.keys.get(after[-1].key).role == "label"
    tab_to(page, "Log out", "BUTTON")
    enter(page)
    assert page.get_by_role("heading", level=1).inner_text() == "Log in"


def test_skipping_to_the_content_leaves_the_navigation_behind(at_home):
    page = at_home("/console/predictions")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
