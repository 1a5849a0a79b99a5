"""Every page in a real browser: narrow and wide, light and dark, with and without scripts."""

import pytest
from tests.web.console.made import ACTED, predict
from tests.web.console.watching import faults

pytestmark = pytest.mark.web

PAGES = {
    "Overview": "/console",
    "Model": "/console/model",
    "Thresholds": "/console/thresholds",
    "Predictions": "/console/predictions",
    "Try it": "/console/try",
}
CHARTS = {
    "/console": ["chart-decisions", "chart-scores"],
    "/console/thresholds": ["chart-rates-0"],
}
LOOKS = [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")]
TRIED = "the zip broke on the first day"


def newest(service, **filters):
    return service.store.predictions.search(limit=1, **filters)[0]


def text_of(page):
    return page.locator("main").inner_text().replace("\N{NO-BREAK SPACE}", " ")


def try_it(page, text=TRIED):
    page.get_by_label("Message").fill(text)
    with page.expect_navigation():
        page.get_by_role("button", name="Score it").click()


@pytest.mark.smoke
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_pages_are_accessible_at_every_width_and_colour_scheme(at_home, local, width, scheme):
    page = at_home("/console/try", width=width, color_scheme=scheme)
    try_it(page)
    assert faults(page) == []
    for path in (*PAGES.values(), f"/console/predictions/{newest(local).id}"):
        assert at_home.go(page, path).status == 200
        for chart in CHARTS.get(path, ()):
            page.wait_for_selector(f"#{chart} .main-svg")
        page.evaluate("document.querySelectorAll('details').forEach((el) => { el.open = true })")
        assert faults(page) == [], path
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, dark[4:-1].split(","))) < 300) == (scheme == "dark")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_audited_precision_of_every_class_is_in_sight(at_home, width):
    page = at_home("/console", width=width)
    cells = page.locator(".by-class tbody tr > td:last-child")
    assert cells.count() == len(ACTED)
    for cell in cells.all():
        box = cell.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= width
    table = page.locator(".by-class").evaluate("el => el.scrollWidth > el.parentNode.clientWidth")
    assert not table
    rows = page.get_by_role("table").filter(has_text="Audited precision").get_by_role("row")
    assert rows.count() == 1 + len(ACTED)  # it is read as a table at any width


@pytest.mark.smoke
def test_the_navigation_leads_to_every_page_and_marks_the_current_one(at_home, local):
    page = at_home("/console/try")
    for title, path in PAGES.items():
        with page.expect_navigation(wait_until="commit"):
            page.get_by_role("navigation", name="Pages").get_by_role("link", name=title).click()
        assert page.url == local.url + path
        assert page.locator("nav.pages [aria-current=page]").inner_text() == title
        assert page.get_by_role("heading", level=1).inner_text() == title


def test_figures_are_there_without_scripts(at_home, local):
    page = at_home(java_script_enabled=False)
    total = local.store.predictions.count()
    assert f"{total} predictions" in text_of(page)
    for promise in local.slot.current.bundle.points:
        assert promise.result.guarantee.partition(",")[0] in text_of(page)
    page.get_by_text("Numbers of the chart").first.click()
    cells = page.get_by_role("region", name="Table of decisions").get_by_role("cell")
    shown = [int(each.replace(",", "")) for each in cells.all_inner_texts()]
    assert sum(shown) == 2 * total  # each once by its decision, and once in the sum of its row
    at_home.go(page, PAGES["Model"])
    assert "Precision is at least 70 %" in text_of(page)
    at_home.go(page, PAGES["Thresholds"])
    point = local.slot.current.bundle.points[0].result
    recall = f"{100 * point.rates['recall'].value:.1f} %"
    assert recall in text_of(page)
    at_home.go(page, PAGES["Predictions"])
    assert page.locator("table.log tbody tr").count() > 20
    at_home.go(page, PAGES["Try it"])
    try_it(page)
    assert "Most probable" in text_of(page)
    assert "%" in page.get_by_role("table").first.inner_text()


def test_the_overview_shows_new_predictions(at_home, local):
    context = at_home.context()
    page = context.new_page()
    page.clock.install()
    at_home.go(page, "/console")
    before = page.locator("#live").inner_text()
    predict(local, [TRIED] * 7)
    page.clock.fast_forward(11_000)
    page.wait_for_function(
        "(old) => document.getElementById('live').textContent !== old", arg=before
    )
    page.get_by_label("refresh automatically").uncheck()
    quiet = page.locator("#live").inner_text()
    page.clock.fast_forward(60_000)
    assert page.locator("#live").inner_text() == quiet


def test_charts_follow_the_colour_scheme(at_home):
    page = at_home("/console", color_scheme="light")
    page.wait_for_selector("#chart-scores .main-svg")
    ink = "getComputedStyle(document.querySelector('#chart-scores .xtick text')).fill"
    light = page.evaluate(ink)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"(light) => {ink} !== light", arg=light)


def test_the_report_opens_in_a_sandbox(at_home):
    page = at_home("/console/model")
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Open the report").click()
    report = opened.value
    report.wait_for_selector("#chart-rates-0 .main-svg")
    assert report.evaluate("window.origin") == "null"  # nobody's: it has no cookie to show
    assert report.evaluate("window.opener") is None
    with page.expect_download() as download:
        page.get_by_role("link", name="Download it").click()
    assert download.value.suggested_filename.endswith(".html")


def test_try_it_follows_the_threshold_and_records_nothing(at_home, local):
    before = local.store.predictions.count()
    page = at_home("/console/try")
    try_it(page)
    for k in range(len(ACTED)):
        slider, status = page.locator(f"#slider-{k}"), page.locator(f"#turned-{k}")
        first = status.inner_text()
        slider.focus()
        page.keyboard.press("Home")
        lowest = status.inner_text()
        page.keyboard.press("End")
        highest = status.inner_text()
        assert "reaches" in lowest
        assert "is below" in highest
        page.get_by_role("button", name="Reset").nth(k).click()
        assert status.inner_text() == first
    assert faults(page) == []
    assert local.store.predictions.count() == before


def test_trying_requires_the_predict_role(abroad):
    page = abroad("/console/try", role="label")
    assert "role predict or admin" in text_of(page)
    assert page.get_by_role("button", name="Score it").count() == 0
