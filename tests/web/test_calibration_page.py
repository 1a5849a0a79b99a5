"""The page of a calibration in a real browser: both diagrams are drawn, and names stay text."""

import numpy as np
import pytest
from typer.testing import CliRunner

from calibrant.cli.main import app

pytestmark = pytest.mark.web

HOSTILE = "</script><img src=x onerror=\"document.title='broken'\">"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    logits = rng.normal(-1, 2, 400)
    labels = rng.random(400) < 1 / (1 + np.exp(0.6 - 0.45 * logits))
    names = np.where(labels, HOSTILE, "a_long_name_of_a_class_that_is_not_the_positive_one")
    np.savez(folder / "s.npz", labels=names, logits=logits)
    words = ["calibrate", folder / "s.npz", "-o", folder / "c.json", "--positive", HOSTILE]
    page = folder / "report.html"
    result = CliRunner().invoke(app, [str(word) for word in (*words, "--html", page)])
    assert result.exit_code == 0, result.output
    return page.as_uri()


def box(page, name):
    return page.locator(f"#chart-{name}").bounding_box()


@pytest.mark.smoke
def test_both_diagrams_are_drawn_side_by_side_or_one_below_the_other(visit):
    wide, narrow = visit(), visit(width=375)
    for page in (wide, narrow):
        for name in ("before", "after"):
            assert page.locator(f"#chart-{name} .main-svg").count() > 0
            assert page.locator(f"#chart-{name} .scatterlayer .point").count() > 3
    assert box(wide, "before")["y"] == box(wide, "after")["y"]
    assert box(wide, "after")["x"] > box(wide, "before")["x"] + 300
    assert box(narrow, "after")["y"] > box(narrow, "before")["y"] + 300


def test_the_bins_of_both_can_be_switched(visit):
    page = visit()
    shown = "(id) => document.getElementById(id).data.at(-2).x"
    first = [page.evaluate(shown, f"chart-{name}") for name in ("before", "after")]
    page.locator("#scheme").select_option("mass")
    second = [page.evaluate(shown, f"chart-{name}") for name in ("before", "after")]
    assert first[0] != second[0]
    assert first[1] != second[1]


@pytest.mark.parametrize("width", [320, 375, 768, 1280])
def test_page_never_scrolls_sideways(visit, width):
    page = visit(width=width)
    for summary in page.locator("summary").all():
        summary.click()
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(over) <= 0


def test_the_page_tells_what_was_tried_and_what_came_of_it(visit):
    page = visit()
    assert page.locator(".headline").inner_text().startswith("Calibration with ")
    tried = page.get_by_role("region", name="Table of methods")
    assert tried.get_by_role("rowheader", name="identity").count() == 1
    assert tried.locator("tr.chosen").count() == 1
    figures = page.get_by_role("region", name="Table of figures before and after")
    assert "better" in figures.inner_text()


def test_hostile_names_are_shown_as_text(visit):
    page = visit()
    assert page.title() == "Calibration"
    assert page.locator("img").count() == 0
    assert HOSTILE in page.locator("section[aria-labelledby=reliability]").inner_text()


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_charts_follow_the_scheme(visit, scheme, dark):
    page = visit(color_scheme=scheme)
    text = "getComputedStyle(document.querySelector('#chart-after .xtick text')).fill"
    red = int(page.evaluate(f"{text}.match(/\\d+/)[0]"))
    assert (red > 150) == dark
