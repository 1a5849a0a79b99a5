"""The report in a real browser: it works, it fits, and hostile names stay text."""

from itertools import pairwise

import numpy as np
import pytest

from calibrant.metrics import evaluate
from calibrant.reports import write_html
from calibrant.testing import WORLDS

pytestmark = pytest.mark.web

HOSTILE = "</script><img src=x onerror=\"document.title='broken'\">"
CLASSES = ["too small", HOSTILE, "defective", "wrong item", "changed mind"]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    draw = WORLDS["multiclass"].draw(1500, 0)
    evaluation = evaluate(
        np.array(CLASSES)[draw.labels],
        draw.probs,
        classes=CLASSES,
        groups=np.where(np.arange(1500) % 2, HOSTILE, "plain"),
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_html(evaluation, path, title="Test report").as_uri()


def words(page):
    return page.locator("#threshold-words").inner_text()


@pytest.mark.smoke
def test_all_charts_are_drawn(visit):
    page = visit()
    for name in ("reliability", "distribution", "recall", "threshold"):
        assert page.locator(f"#chart-{name} .main-svg").count() > 0, name


def test_slider_moves_the_words(visit):
    page = visit()
    before = words(page)
    assert before.startswith("At threshold 0.5")
    assert "of flagged rows are right" in before
    slider = page.get_by_label("Threshold on the probability")
    slider.fill("0.8")
    assert words(page).startswith("At threshold 0.8")
    assert words(page) != before
    slider.focus()
    page.keyboard.press("Home")
    assert "100 % of all rows of class “too small” are found" in words(page)
    assert page.locator("#threshold-number").input_value() == "0"


def test_number_field_moves_the_slider_and_ignores_nonsense(visit):
    page = visit()
    field = page.locator("#threshold-number")
    field.fill("0.25")
    assert page.locator("#threshold-slider").input_value() == "0.25"
    before = words(page)
    field.fill("")
    assert words(page) == before


def test_words_agree_with_counting(visit, tmp_path):
    """With few distinct scores the curve keeps all of them, so the reading can be counted."""
    labels, probs = [0, 0, 1, 1], [0.2, 0.6, 0.6, 0.9]
    path = write_html(evaluate(labels, probs), tmp_path / "r.html")
    page = visit(url=path.as_uri())
    assert words(page) == (
        "At threshold 0.6: 67 % of flagged rows are right, 100 % of all rows of class “1” are "
        "found, 75 % of rows are flagged (3 of 4)."
    )
    page.locator("#threshold-number").fill("0.95")
    assert words(page) == "At threshold 0.95: no row is flagged."


def test_class_selector_changes_every_chart(visit):
    page = visit()
    before = words(page)
    page.locator("#class-distribution").select_option(label="defective")
    assert "“defective”" in words(page)
    assert words(page) != before
    for name in ("class-recall", "class-threshold"):
        assert page.locator(f"#{name}").input_value() == "2"


def test_bins_and_log_scale_can_be_switched(visit):
    page = visit()
    page.locator("#scheme").select_option("mass")
    page.locator("#log").check()
    kind = "document.getElementById('chart-distribution').layout.yaxis.type"
    assert page.evaluate(kind) == "log"


@pytest.mark.parametrize("width", [320, 375, 768, 1280])
def test_page_never_scrolls_sideways(visit, width):
    page = visit(width=width)
    for summary in page.locator("summary").all():
        summary.click()
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(over) <= 0


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_background_and_charts_follow_the_scheme(visit, scheme, dark):
    page = visit(color_scheme=scheme)
    assert (luminance(page, "getComputedStyle(document.body).backgroundColor") < 60) == dark
    text = "getComputedStyle(document.querySelector('#chart-recall .xtick text')).fill"
    assert (luminance(page, text) > 150) == dark


def test_charts_follow_a_change_of_scheme(visit):
    page = visit(color_scheme="light")
    page.emulate_media(color_scheme="dark")
    # While a chart is drawn again its text is gone for a moment.
    page.wait_for_function(
        "() => { const text = document.querySelector('#chart-recall .xtick text');"
        " return text && getComputedStyle(text).fill.match(/\\d+/)[0] > 150; }"
    )


def luminance(page, colour):
    red, green, blue = page.evaluate(f"{colour}.match(/\\d+/g).slice(0, 3).map(Number)")
    return 0.2 * red + 0.7 * green + 0.1 * blue


def test_hostile_names_are_shown_as_text(visit):
    page = visit()
    assert page.title() == "Test report"
    assert page.locator("img").count() == 0
    assert page.get_by_role("rowheader", name=HOSTILE).count() >= 2
    page.locator("#class-threshold").select_option(label=HOSTILE)
    assert f"“{HOSTILE}”" in words(page)
    assert page.title() == "Test report"


def test_page_without_curves_has_no_errors(visit, tmp_path):
    from dataclasses import replace

    bare = replace(evaluate([0, 1, 1], [0.2, 0.7, 0.9]), curves={}, bins={})
    page = visit(url=write_html(bare, tmp_path / "bare.html").as_uri())
    assert page.get_by_text("There are no bins to draw.").is_visible()


def test_headings_are_in_order(visit):
    levels = visit().evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map((h) => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_one_row_shows_dots(visit, tmp_path):
    groups = evaluate([1, 0, 1], [0.4, 0.2, 0.7], groups=["lone", "b", "b"]).groups
    page = visit(url=write_html(groups["lone"], tmp_path / "one.html").as_uri())
    assert page.locator("#chart-threshold .scatterlayer .point").count() == 3
    assert page.locator("#chart-recall .scatterlayer .point").count() >= 1
    many = visit()
    assert many.locator("#chart-threshold .scatterlayer .point").count() == 0


def test_a_long_note_wraps(visit, tmp_path):
    from dataclasses import replace

    from calibrant.results import Figure

    found = evaluate([0, 1, 1], [0.2, 0.7, 0.9])
    note = Figure("nll", None, "", why="infinite, for some probability of what happened is 0 " * 4)
    path = write_html(replace(found, figures={**found.figures, "nll": note}), tmp_path / "n.html")
    page = visit(url=path.as_uri())
    over = "(e) => e.scrollWidth - e.clientWidth"
    assert page.get_by_label("Table of all metrics").evaluate(over) <= 0
