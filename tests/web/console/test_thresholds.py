"""Thresholds in a real browser: explore, try a target, save it, and restore a version."""

import re

import pytest
from tests.web.console.made import ACTED, ask
from tests.web.console.test_predictions import send
from tests.web.console.watching import faults

pytestmark = pytest.mark.web

PAGE = "/console/thresholds"
TARGET, SAVE, RESTORE = (f"{PAGE}/{name}" for name in ("target", "save", "restore"))
REACHED, LOST = "precision>=0.6", "precision>=0.999"


def try_target(page, words):
    page.get_by_label("Target for").fill(words)
    with page.expect_navigation():
        page.get_by_label("Target for").press("Enter")


def press(page, name):
    with page.expect_navigation():
        page.get_by_role("button", name=name, exact=True).click()


def reading(page):
    return page.locator("#reading-0").inner_text()


def result(page):
    return page.locator("#result").inner_text().replace("\N{NO-BREAK SPACE}", " ")


def served(service):
    return ask(service, "/v1/bundle", key=service.keys["admin"])


def decided_by(service, of):
    """Return the threshold by which a class is acted on."""
    points = (each.result for each in service.slot.current.bundle.points)
    return next(each.threshold for each in points if each.of == of)


def kinds(service):
    return [event.kind for event in service.store.events.latest()]


@pytest.mark.smoke
def test_arrow_keys_move_the_threshold_and_update_the_reading(at_home):
    page = at_home(PAGE)
    slider = page.get_by_role("slider")
    slider.focus()
    seen = [(slider.input_value(), reading(page), page.locator("#threshold").input_value())]
    for key in ("ArrowRight", "ArrowRight", "PageDown", "Home", "End"):
        page.keyboard.press(key)
        seen.append((slider.input_value(), reading(page), page.locator("#threshold").input_value()))
        assert page.locator("#value-precision-0").inner_text()
    assert len({place for place, _, _ in seen}) == len(seen)
    assert len({words for _, words, _ in seen}) == len(seen)
    assert len({typed for _, _, typed in seen}) == len(seen)
    page.get_by_role("button", name="Back to the chosen point").click()
    assert reading(page) == seen[0][1]


def test_costs_are_shown_and_invalid_ones_are_refused(at_home):
    page = at_home(PAGE)
    page.locator("#fp").fill("1")
    page.locator("#fn").fill("4")
    press(page, "Show")
    page.wait_for_selector("#chart-cost-0 .main-svg")
    assert "What it costs" in page.locator("main").inner_text()
    assert faults(page) == []
    page.locator("#fp").fill("much")
    with at_home.expecting(PAGE, 422):
        press(page, "Show")
    assert page.locator("#fp").input_value() == "much"
    assert page.get_by_role("alert").inner_text()
    assert faults(page) == []


def test_an_unreachable_target_says_why_and_what_is_missing(at_home, local):
    page = at_home(PAGE)
    try_target(page, LOST)
    assert "Not reached" in result(page)
    assert re.search(r"label", result(page))
    assert page.get_by_role("button", name="Save this threshold").count() == 0
    assert faults(page) == []
    page.reload()  # looks at it again, and tries nothing
    assert kinds(local).count("target_tried") == 1
    for wrong in ("precision>>0.9", "beauty>=0.9", "precision>=2"):
        page.get_by_label("Target for").fill(wrong)
        with at_home.expecting(TARGET, 422), page.expect_navigation():
            page.get_by_label("Target for").press("Enter")
        assert page.get_by_label("Target for").input_value() == wrong
        assert page.locator("#hold-fault").inner_text()
    assert kinds(local).count("target_tried") == 1
    assert faults(page) == []


def test_a_certified_threshold_is_saved_served_and_reverted(abroad, guarded):
    before, threshold = served(guarded), decided_by(guarded, ACTED[0])
    page = abroad(PAGE, role="admin")
    try_target(page, REACHED)
    assert "Certified" in result(page)
    assert "Precision is at least 60 %" in result(page)
    assert served(guarded) == before  # so far nothing has changed
    assert faults(page) == []
    page.get_by_label("Reason (optional)").first.fill("we can look at more <b>rows</b>")
    press(page, "Save this threshold")
    assert "saved" in page.get_by_role("status").first.inner_text()
    after = served(guarded)
    assert after["hash"] != before["hash"]
    assert decided_by(guarded, ACTED[0]) < threshold
    assert after["id"] in page.locator(".brand").inner_text()
    versions = page.locator(".versions").inner_text()
    assert "admin desk" in versions
    assert "we can look at more <b>rows</b>" in versions
    assert faults(page) == []
    page.get_by_text(f"Restore version {before['id']}").click()
    press(page, "Restore this version")
    assert served(guarded)["hash"] == before["hash"]
    assert decided_by(guarded, ACTED[0]) == threshold
    assert "restored" in page.get_by_role("status").first.inner_text()
    assert kinds(guarded)[:3] == ["version_restored", "point_saved", "target_tried"]
    assert faults(page) == []


def test_a_threshold_is_set_by_hand_without_a_promise(abroad, guarded):
    before = served(guarded)
    page = abroad(PAGE, role="admin", width=390)
    page.get_by_text("Save a threshold without a promise").click()
    page.locator("#threshold").fill("nonsense")
    with abroad.expecting(SAVE, 422):
        press(page, "Save without a promise")
    assert served(guarded) == before
    abroad.go(page, PAGE)
    page.get_by_text("Save a threshold without a promise").click()
    page.locator("#threshold").fill("0.9")
    press(page, "Save without a promise")
    assert decided_by(guarded, ACTED[0]) == pytest.approx(0.9)
    assert "No promise" in page.locator("main").inner_text()
    assert faults(page) == []


def test_a_page_of_an_earlier_version_saves_nothing(abroad, guarded):
    page = abroad(PAGE, role="admin")
    other = page.context.new_page()
    abroad.go(other, PAGE)
    for each, threshold in ((other, "0.91"), (page, "0.92")):
        each.get_by_text("Save a threshold without a promise").click()
        each.locator("#threshold").fill(threshold)
    press(other, "Save without a promise")
    with abroad.expecting(SAVE, 409):
        press(page, "Save without a promise")
    assert "nothing was changed" in page.locator("main").inner_text()
    assert decided_by(guarded, ACTED[0]) == pytest.approx(0.91)


def test_only_an_admin_saves_or_restores(abroad, guarded):
    before = served(guarded)
    page = abroad(PAGE, role="label")
    try_target(page, "precision>=0.61")
    assert "Certified" in result(page)
    assert "role admin" in result(page)
    tried = page.url.partition("tried=")[2].partition("#")[0]
    assert page.get_by_role("button", name=re.compile("Save|Restore")).count() == 0
    past = guarded.store.events.latest(kinds=["point_saved"])
    for path, fields in (
        (SAVE, {"base": before["hash"], "tried": tried}),
        (SAVE, {"base": before["hash"], "rule": "", "threshold": "0.5"}),
        (RESTORE, {"base": before["hash"], "version": before["hash"]}),
    ):
        refused(abroad, page, path, **fields)
    assert served(guarded) == before
    assert guarded.store.events.latest(kinds=["point_saved"]) == past


def test_a_predict_key_cannot_try_targets(abroad, guarded):
    page = abroad(PAGE, role="predict")
    assert page.get_by_label("Target for").count() == 0
    assert "role label or admin" in page.locator("main").inner_text()
    before = kinds(guarded)
    refused(abroad, page, TARGET, hold=REACHED, rows=guarded.slot.current.bundle.calib.hash)
    assert kinds(guarded) == before


def refused(visit, page, path, **fields):
    """Send a request that the visitor's key does not allow."""
    with visit.expecting(path, 403):
        send(page, path, **fields)
    assert "nothing was changed" in page.locator("main").inner_text()


def test_a_form_without_its_token_saves_nothing(abroad, guarded):
    before = served(guarded)
    page = abroad(PAGE, role="admin")
    page.get_by_text("Save a threshold without a promise").click()
    page.locator("#by-hand [name=csrf]").evaluate("(el) => el.remove()")
    with abroad.expecting(SAVE, 403):
        press(page, "Save without a promise")
    assert served(guarded) == before


CUT = """[...document.querySelectorAll(".scroll")]
    .filter((each) => each.scrollWidth > each.clientWidth + 1)
    .map((each) => each.getAttribute("aria-label"))"""


@pytest.mark.parametrize("width", [390, 1280])
def test_every_point_is_fully_readable_with_its_promise(at_home, local, width):
    page = at_home(PAGE, width=width)
    try_target(page, REACHED)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
    assert page.evaluate(CUT) == []  # nothing has to be pushed aside to be read
    table = page.get_by_role("region", name="Points of the bundle")
    points = local.slot.current.bundle.points
    rows = table.get_by_role("row").filter(has=page.get_by_role("cell"))
    assert rows.count() == len(points) > 1
    for row, each in zip(rows.all(), points, strict=True):
        promise = row.get_by_role("cell").last.inner_text().replace("\N{NO-BREAK SPACE}", " ")
        assert promise == each.result.guarantee
        assert row.get_by_role("cell").last.bounding_box()["width"] > 200
    assert faults(page) == []
