"""The page about thresholds in a real browser: slider, promise, and names that stay text."""

from itertools import pairwise

import numpy as np
import pytest

from calibrant.errors import TargetUnreachable
from calibrant.reports import write_threshold_html
from calibrant.reports.threshold.wording import threshold_words
from calibrant.thresholds import (
    Cost,
    accuracy,
    coverage,
    npv,
    precision,
    select,
    select_band,
    select_each,
)

pytestmark = pytest.mark.web

HOSTILE = "</script><img src=x onerror=\"document.title='broken'\">"
CLASSES = ("a_long_name_of_a_class_that_is_not_acted_on", HOSTILE)


def drawn(n=4000):
    rng = np.random.default_rng(0)
    logits = rng.normal(-2, 2.6, n)
    probs = 1 / (1 + np.exp(-logits))
    return (rng.random(n) < probs).astype(int), probs


LABELS, PROBS = drawn()
NAMED = np.array(CLASSES)[LABELS]


def page_of(folder, result, **rows):
    given = {"labels": LABELS, "scores": PROBS, "on": "probs", "classes": CLASSES, **rows}
    return write_threshold_html(result, folder / "page.html", source="scores.csv", **given).as_uri()


@pytest.fixture(scope="module")
def point():
    return select(NAMED, PROBS, classes=list(CLASSES), hold=precision >= 0.85)


@pytest.fixture(scope="module")
def report(point, tmp_path_factory):
    folder = tmp_path_factory.mktemp("threshold")
    return page_of(folder, point, cost=Cost(false_positive=1, false_negative=4))


def reading(page, k=0):
    return page.locator(f"#reading-{k}").inner_text()


def promise(page, k=0):
    return page.locator(f"#promise-{k}").inner_text()


def tile(page, name, k=0):
    return page.locator(f"#value-{name}-{k}").inner_text()


def percent(value):
    return f"{100 * value:.1f} %"


@pytest.mark.smoke
def test_charts_are_drawn_with_bands_target_and_chosen_point(visit):
    page = visit()
    for name in ("rates-0", "cost-0"):
        assert page.locator(f"#chart-{name} .main-svg").count() > 0
    bands = page.locator("#chart-rates-0 .scatterlayer .js-fill")
    assert bands.count() == 2
    assert page.locator("#chart-rates-0 .scatterlayer .point").count() == 2  # the chosen point
    shapes = page.evaluate("document.getElementById('chart-rates-0').layout.shapes")
    assert sorted(shape["line"].get("dash", "solid") for shape in shapes) == ["dash", "solid"]
    assert next(shape["y0"] for shape in shapes if shape["line"].get("dash")) == 0.85


def test_it_begins_at_the_chosen_point(visit, point):
    page = visit()
    acted = int(point.act(PROBS).sum())
    right = int(LABELS[point.act(PROBS)].sum())
    assert f"{acted} of 4,000 rows are acted on: {right} rightly and" in reading(page)
    assert promise(page) == "This is the point that carries the promise."
    assert tile(page, "precision") == percent(point["precision"].value)
    assert tile(page, "recall") == percent(point["recall"].value)
    assert tile(page, "coverage") == percent(point["coverage"].value)
    low, high = point["precision"].interval.low, point["precision"].interval.high
    band = page.locator("#band-precision-0").inner_text()
    assert band == f"{percent(low)} to {percent(high)}"


def test_the_slider_works_by_keyboard_and_speaks(visit, point):
    page = visit()
    slider = page.get_by_role("slider", name="Threshold on the decision score for class")
    spoken = slider.get_attribute("aria-valuetext")
    assert spoken.startswith(f"Threshold {threshold_words(point.threshold)}: Precision")
    assert "expected cost" in spoken
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert promise(page).startswith("No promise here: only threshold 0.")
    assert slider.get_attribute("aria-valuetext") != spoken
    page.keyboard.press("Home")
    assert "4,000 of 4,000 rows are acted on" in reading(page)
    assert tile(page, "recall") == "100.0 %"
    page.keyboard.press("End")
    assert reading(page).startswith("At a threshold above every score, no row is acted on")
    assert tile(page, "precision") == "–"
    page.get_by_role("button", name="Back to the chosen point").click()
    assert promise(page) == "This is the point that carries the promise."


def test_the_slider_moves_the_line_in_both_charts(visit):
    page = visit()
    at = "(id) => document.getElementById(id).layout.shapes.at(-1).x0"
    before = [page.evaluate(at, f"chart-{name}-0") for name in ("rates", "cost")]
    page.locator("#number-0").fill("0.25")
    after = [page.evaluate(at, f"chart-{name}-0") for name in ("rates", "cost")]
    assert before[0] == before[1] != after[0] == after[1]
    assert after[0] == pytest.approx(0.25, abs=0.01)


def test_a_typed_threshold_is_read_at_the_next_score(visit, tmp_path):
    """With few distinct scores the page keeps all of them, so the reading can be counted."""
    labels, probs = np.array([0] * 30 + [1] * 30), np.arange(60).round(-1) / 100
    point = select(labels, probs, hold=precision >= 0.6)
    page = visit(url=page_of(tmp_path, point, labels=labels, scores=probs, classes=(0, 1)))
    page.locator("#number-0").fill("0.41")
    acted = int((probs >= 0.41).sum())
    assert f"At threshold 0.5, {acted} of 60 rows" in reading(page)
    page.locator("#number-0").fill("")
    assert "At threshold 0.5" in reading(page)
    page.locator("#number-0").fill("0.99")
    assert "no row is acted on" in reading(page)


def test_expected_cost_follows(visit):
    page = visit()
    page.locator("#number-0").fill("0.5")
    data = "JSON.parse(document.getElementById('charts').textContent)[0]"
    threshold = page.evaluate(f"{data}.threshold.find((t) => t >= 0.5)")
    acted = threshold <= PROBS
    cost = np.where(acted, 1.0 * (LABELS == 0), 4.0 * (LABELS == 1)).mean()
    assert float(tile(page, "cost")) == pytest.approx(cost, abs=6e-5)


@pytest.mark.parametrize("scale", ["threshold", "logit", "share"])
def test_the_scale_can_be_changed(visit, scale):
    page = visit()
    page.locator("#scale-0").select_option(scale)
    chart = "document.getElementById('chart-rates-0')"
    x, title = page.evaluate(f"[{chart}.data[2].x[0], {chart}.layout.xaxis.title.text]")
    lowest = {"threshold": PROBS.min(), "logit": np.log(PROBS.min()), "share": 1.0}[scale]
    assert x == pytest.approx(lowest, rel=1e-3)
    assert ("share" in title) == (scale == "share")
    assert promise(page) == "This is the point that carries the promise."


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_page_never_scrolls_sideways(visit, width):
    page = visit(width=width)
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(over) <= 0
    if width >= 390:
        table = page.get_by_role("region", name="Table of rates")
        assert table.evaluate("(e) => e.scrollWidth - e.clientWidth") <= 0


def test_hostile_names_are_shown_as_text(visit):
    page = visit()
    assert page.title() == "Operating point"
    assert page.locator("img").count() == 0
    assert HOSTILE in page.locator("#part-0").inner_text()


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_charts_follow_the_scheme(visit, scheme, dark):
    page = visit(color_scheme=scheme)
    text = "getComputedStyle(document.querySelector('#chart-rates-0 .xtick text')).fill"
    red = int(page.evaluate(f"{text}.match(/\\d+/)[0]"))
    assert (red > 150) == dark


def test_charts_follow_a_change_of_scheme_and_keep_the_slider(visit):
    page = visit(color_scheme="light")
    page.locator("#number-0").fill("0.25")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "() => { const text = document.querySelector('#chart-rates-0 .xtick text');"
        " return text && getComputedStyle(text).fill.match(/\\d+/)[0] > 150; }"
    )
    at = "document.getElementById('chart-rates-0').layout.shapes.at(-1).x0"
    assert page.evaluate(at) == pytest.approx(0.25, abs=0.01)


def test_headings_are_in_order(visit):
    levels = visit().evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map((h) => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_an_unreachable_target(visit, tmp_path):
    few = slice(600)
    with pytest.raises(TargetUnreachable) as caught:
        select(NAMED[few], PROBS[few], classes=list(CLASSES), hold=precision >= 0.93)
    url = page_of(tmp_path, caught.value, labels=LABELS[few], scores=PROBS[few])
    page = visit(url=url)
    assert page.locator(".headline").inner_text().startswith("No threshold can promise that")
    assert "It falls short of the target." in promise(page)
    page.locator("#slider-0").press("Home")
    assert promise(page) == "No promise here."
    page.get_by_role("button", name="Back to the best bound").click()
    assert "falls short" in promise(page)


def test_nothing_proved_and_nothing_marked(visit, tmp_path):
    error = TargetUnreachable(hold="precision>=0.9", n=4000, positives=9, of=HOSTILE)
    page = visit(url=page_of(tmp_path, error))
    assert promise(page) == "No threshold carries a promise."
    assert page.locator("#chart-rates-0 .scatterlayer .point").count() == 0


def test_several_classes_have_sliders_of_their_own(visit, tmp_path):
    rng = np.random.default_rng(1)
    probs = rng.dirichlet([0.4, 0.4, 0.4], 2000)
    names = ("a", HOSTILE, "never")
    labels = np.minimum([rng.choice(3, p=row) for row in probs], 1)
    found = select_each(np.array(names)[labels], probs, classes=list(names), hold=precision >= 0.6)
    page = visit(url=page_of(tmp_path, found, labels=labels, scores=probs, classes=names))
    assert page.get_by_role("slider").count() == 3
    before = [reading(page, k) for k in range(3)]
    page.locator("#slider-1").press("End")
    after = [reading(page, k) for k in range(3)]
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, True]


def test_a_band_clears_below(visit, tmp_path):
    found = select_band(LABELS, PROBS, act=precision >= 0.85, clear=npv >= 0.97)
    page = visit(url=page_of(tmp_path, found, classes=(0, 1)))
    cleared = int((found.lower.threshold > PROBS).sum())
    assert f"{cleared:,} of 4,000 rows are cleared" in reading(page, 1)
    assert tile(page, "abstention", 1) == percent(cleared / 4000)
    assert "carries the promise" in promise(page, 1)


def test_predictions_of_any_class(visit, tmp_path):
    point = select(LABELS, PROBS, hold=accuracy >= 0.9)
    page = visit(url=page_of(tmp_path, point, classes=(0, 1)))
    accepted = int(point.act(PROBS).sum())
    assert f"{accepted:,} of 4,000 predictions are accepted" in reading(page)
    page.locator("#slider-0").press("End")
    assert reading(page).endswith("no prediction is accepted.")


def test_a_point_that_acts_on_every_row_has_no_band_for_what_is_settled(visit, tmp_path):
    point = select(NAMED, PROBS, classes=list(CLASSES), hold=precision >= 0.1, maximise=coverage)
    assert point.act(PROBS).all()
    page = visit(url=page_of(tmp_path, point))
    bands = {name: page.locator(f"#band-{name}-0") for name in ("precision", "recall", "coverage")}
    assert bands["recall"].inner_text() == bands["coverage"].inner_text() == "by definition"
    assert " to " in bands["precision"].inner_text()
    slider = page.locator("#slider-0")
    slider.focus()
    slider.press("ArrowRight")
    assert " to " in bands["recall"].inner_text()


def test_saturated_scores_are_read_in_log_odds(visit, tmp_path):
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 60, 2000)
    labels = (rng.random(2000) < 1 / (1 + np.exp(-logits / 25))).astype(int)
    point = select(labels, logits=logits, hold=precision >= 0.9)
    rows = {"labels": labels, "scores": logits, "on": "logits", "classes": (0, 1)}
    page = visit(url=page_of(tmp_path, point, **rows))
    assert page.locator("#scale-0").input_value() == "logit"
    assert page.locator("#unit-0").inner_text() == "Decision score (log-odds)"
    assert "(log-odds " in reading(page)
    page.locator("#number-0").fill("45")
    acted = int((logits >= 45).sum())
    assert f"{acted} of 2,000 rows are acted on" in reading(page)


def test_one_score_alone_is_drawn(visit, tmp_path):
    labels, probs = np.array([0, 1] * 40), np.full(80, 0.5)
    point = select(labels, probs, hold=precision >= 0.3)
    page = visit(url=page_of(tmp_path, point, labels=labels, scores=probs, classes=(0, 1)))
    assert page.locator("#chart-rates-0 .scatterlayer .point").count() >= 2
    assert "80 of 80 rows are acted on" in reading(page)
