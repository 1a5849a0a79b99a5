"""The page of a study in a real browser: every chart is drawn, it fits, and names stay text."""

from itertools import pairwise

import pytest
from tests.unit.study.report.study_cases import (
    HOSTILE,
    a_hostile_study,
    a_lonely_study,
    a_plain_study,
    a_study,
    a_wide_study,
    an_averaged_study,
    an_unbinned_study,
    an_uncurved_study,
    an_unpromised_study,
)

from calibrant.study.report.page import write_study_html

pytestmark = pytest.mark.web

CASES = [
    a_study, a_plain_study, a_lonely_study, a_hostile_study, a_wide_study, an_averaged_study,
]  # fmt: skip
LEAD = {
    **dict.fromkeys([*CASES, an_unpromised_study], ("reliability", "rates")),
    an_uncurved_study: ("reliability",),
    an_unbinned_study: ("rates",),
}
"""The charts of the first screen of each case."""
SCREENS = [(390, 844), (1280, 800)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    return {
        case: write_study_html(case(), folder / f"{case.__name__}.html").as_uri() for case in LEAD
    }


@pytest.fixture(scope="module")
def report(pages):
    return pages[a_study]


def open_all(page):
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")


@pytest.mark.smoke
@pytest.mark.parametrize("case", CASES)
def test_every_chart_is_drawn_and_fills_its_place(visit, pages, case):
    page = visit(url=pages[case])
    open_all(page)
    page.wait_for_timeout(300)
    charts = page.locator(".chart")
    assert charts.count() >= 4
    for chart in charts.all():
        name = chart.get_attribute("id")
        assert chart.locator(".main-svg").count() > 0, name
        drawn = chart.locator(".main-svg").first.bounding_box()
        assert abs(drawn["width"] - chart.bounding_box()["width"]) < 3, name


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_never_scrolls_sideways(visit, pages, case, width):
    page = visit(url=pages[case], width=width)
    open_all(page)
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(over) <= 0


def box_of(locator):
    box = locator.bounding_box()
    return box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]


@pytest.mark.parametrize(("case", "names"), LEAD.items())
@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_the_first_screen_shows_the_charts(visit, pages, case, names, width, height):
    page = visit(url=pages[case], width=width)
    page.set_viewport_size({"width": width, "height": height})
    charts = page.locator(".verdict .chart.lead").all()
    assert [one.get_attribute("id") for one in charts] == [f"chart-lead-{name}" for name in names]
    for chart in charts if width > 600 else charts[:1]:
        left, top, right, bottom = box_of(chart.locator(".main-svg").first)
        assert 0 <= left < right <= width
        assert box_of(page.locator(".headline"))[3] <= top < bottom <= height
        assert bottom - top >= 200
        assert chart.locator(".scatterlayer .trace").count() > 0
    figures = page.locator(".lead-figures > div")
    assert figures.count() == 4
    if width > 600:
        assert max(box_of(figure)[3] for figure in figures.all()) <= height
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(over) <= 0


def test_the_key_figures_fill_the_place_of_a_missing_chart(visit, pages):
    for case in (an_uncurved_study, an_unbinned_study):
        page = visit(url=pages[case])
        figures, chart = box_of(page.locator(".lead-figures")), box_of(page.locator(".chart.lead"))
        assert figures[0] >= chart[2]
        assert figures[1] < chart[3]


def test_the_charts_of_the_first_screen_are_side_by_side_or_below_each_other(visit):
    for width, beside in ((390, False), (1280, True)):
        page = visit(width=width)
        one, other = (box_of(chart) for chart in page.locator(".chart.lead").all())
        assert (one[2] <= other[0]) is beside
        assert (one[3] <= other[1]) is not beside


def test_the_first_screen_draws_before_and_after_as_the_charts_below_do(visit):
    page = visit()
    points = (
        "([id, symbol]) => { const t = document.getElementById(id).data.find((t) => t.marker && "
        "(symbol ? t.marker.symbol === symbol : t.marker.size === 9)); return [t.x, t.y]; }"
    )
    lead = "chart-lead-reliability"
    after = page.evaluate(points, [lead, None])
    assert after == page.evaluate(points, ["chart-reliability-bundle", None])
    before = page.evaluate(points, [lead, "square"])
    assert before == page.evaluate(points, ["chart-reliability-best", None])
    assert before != after
    page.locator("#scheme").select_option("mass")
    assert page.evaluate(points, [lead, None]) != after


def test_the_first_screen_marks_the_threshold_or_the_best_that_was_proved(visit, pages):
    marks = (
        "() => { const c = document.getElementById('chart-lead-rates'); return {"
        "x: c.data.filter((t) => t.marker && t.marker.symbol === 'diamond').map((t) => t.x[0]),"
        "levels: c.layout.shapes.map((s) => [s.line.dash, s.y0])}; }"
    )
    point = a_study().points[0].result
    shown = visit().evaluate(marks)
    assert shown["x"] == [pytest.approx(point.logit)] * 2
    assert shown["levels"] == [["dash", 0.85]]
    lost = an_unpromised_study().points[0].result
    page = visit(url=pages[an_unpromised_study])
    shown = page.evaluate(marks)
    assert shown["levels"] == [["dash", 0.999], ["dot", pytest.approx(lost.best)]]
    assert len(shown["x"]) == 2
    assert f"best proved {100 * lost.best:.1f}" in page.locator(".lead-charts").inner_text()


def test_long_words_of_the_first_screen_are_folded_and_can_be_read(visit):
    page = visit()
    part = page.locator(".folded details").nth(2)
    assert "Promise kept" in part.locator("summary").inner_text()
    words = part.locator("p").first
    assert not words.is_visible()
    part.locator("summary").click()
    assert words.is_visible()


def test_logs_and_golden_rows_are_in_one_diagram(visit):
    page = visit()
    symbols = "(id) => document.getElementById(id).data.map((t) => t.marker && t.marker.symbol)"
    assert "square" in page.evaluate(symbols, "chart-reliability-base")
    assert "square" not in page.evaluate(symbols, "chart-reliability-bundle")


def test_another_candidate_bins_and_figures_can_be_chosen(visit):
    page = visit()
    first = "(id) => JSON.stringify(document.getElementById(id).data.at(-1).x)"
    choices = (
        ("#other-candidate", "chart-reliability-other", {"label": "Focal, gamma 5, as it is"}),
        ("#scheme", "chart-reliability-bundle", {"value": "mass"}),
        ("#across", "chart-frontier", {"value": "nll"}),
    )
    for selector, chart, option in choices:
        before = page.evaluate(first, chart)
        page.locator(selector).select_option(**option)
        assert page.evaluate(first, chart) != before, selector
    page.locator("#recorded").select_option("f1")
    assert page.locator("#chart-training .ytitle").text_content() == "macro F1"
    page.locator("#log").check()
    kind = "document.getElementById('chart-histogram-0').layout.yaxis.type"
    assert page.evaluate(kind) == "log"


def test_cross_entropy_with_temperature_is_shown_beside_the_bundle(visit):
    shown = visit().locator("#other-candidate option:checked")
    assert shown.inner_text() == "Cross-entropy, after temperature scaling"


def test_the_slider_of_a_promise_works(visit):
    page = visit()
    assert page.locator("#promise-0").inner_text() == "This is the point that carries the promise."
    page.get_by_role("slider", name="Threshold on the decision score for class").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#promise-0").inner_text().startswith("No promise here")


@pytest.mark.parametrize("width", [390, 1280])
def test_of_many_candidates_the_chosen_one_and_those_with_room_are_named(visit, pages, width):
    page = visit(url=pages[an_averaged_study], width=width)
    names = page.locator("#chart-frontier .annotation-text").all_text_contents()
    assert 2 <= len(names) <= 11
    ends = "×2" if width == 390 else "ensemble of 2 (chosen)"
    assert any(name.endswith(ends) for name in names)


def test_names_on_the_trade_off_do_not_cover_each_other(visit):
    for width in (390, 1280):
        page = visit(width=width)
        boxes = [b.bounding_box() for b in page.locator("#chart-frontier .annotation-text").all()]
        assert len(boxes) == 6
        for i, a in enumerate(boxes):
            for b in boxes[i + 1 :]:
                apart = (
                    a["x"] + a["width"] <= b["x"] + 2
                    or b["x"] + b["width"] <= a["x"] + 2
                    or a["y"] + a["height"] <= b["y"] + 4
                    or b["y"] + b["height"] <= a["y"] + 4
                )
                assert apart, (a, b)


def test_hostile_names_are_shown_as_text(visit, pages):
    page = visit(url=pages[a_hostile_study])
    open_all(page)
    assert page.title() == "Return reasons"
    assert page.locator("img").count() == 0
    assert HOSTILE in page.locator("#point-0").inner_text()


def test_headings_are_in_order(visit):
    levels = visit().evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map((h) => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_charts_follow_the_scheme(visit, scheme, dark):
    page = visit(color_scheme=scheme)
    for name in ("frontier", "lead-reliability", "lead-rates"):
        text = f"getComputedStyle(document.querySelector('#chart-{name} .xtick text')).fill"
        red = int(page.evaluate(f"{text}.match(/\\d+/)[0]"))
        assert (red > 150) == dark


def test_ids_are_unique(visit):
    ids = visit().evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    own = [name for name in ids if "clip" not in name and "-" in name]
    assert len(own) == len(set(own))
