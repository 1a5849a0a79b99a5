"""The page as text: nothing breaks out, nothing is loaded, and it is written whole or not."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from tests.sentences import assert_mentions, refuses

from calibrant.errors import InputError
from calibrant.metrics import evaluate
from calibrant.reports import html, write_html
from calibrant.reports.evaluation import page as html_report
from calibrant.reports.evaluation.page_data import page_data, script_json
from calibrant.results import Figure
from calibrant.testing import WORLDS

HOSTILE = "</script><img src=x onerror=alert(1)>&\u2028'\"{{ 7*7 }}"


class Tags(HTMLParser):
    """Every element with its attributes, and the text of scripts apart."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def named(self, tag):
        return [attrs for name, attrs in self.found if name == tag]


@pytest.fixture(scope="module")
def binary():
    draw = WORLDS["binary"].draw(800, 0)
    return evaluate(draw.labels, draw.probs)


@pytest.fixture(scope="module")
def page(binary):
    return html(binary, title="Some model", source="a.csv")


@pytest.fixture(scope="module")
def hostile():
    draw = WORLDS["binary"].draw(200, 0)
    names = np.array(["other", HOSTILE])
    return html(
        evaluate(
            names[draw.labels],
            draw.probs,
            classes=names.tolist(),
            groups=np.where(np.arange(200) % 2, HOSTILE, "plain"),
        ),
        title=HOSTILE,
        source=HOSTILE,
    )


def test_headline_comes_before_every_other_section(page, binary):
    text = binary.verdict.text.replace("<", "&lt;").replace(">", "&gt;")
    assert page.index(text[1:]) < page.index('id="reliability"')
    order = [
        "verdict", "reliability", "distribution", "precision-recall", "threshold", "classes",
        "confusion", "metrics", "definitions", "notes",
    ]  # fmt: skip
    places = [page.index(f'<h2 id="{name}"') for name in order]
    assert places == sorted(places)


def test_hostile_names_stay_text(hostile):
    tags = Tags(hostile)
    assert not tags.named("img")
    assert len(tags.named("script")) == 3
    assert "<img" not in hostile.replace(html_report._part("report.js"), "").split("<script>")[0]
    assert "49" not in re.findall(r"<h1>(.*?)</h1>", hostile, re.S)[0]
    charts = re.findall(r'id="charts">(.*?)</script>', hostile, re.S)[0]
    assert not set("<>&\u2028") & set(charts)
    assert json.loads(charts)["classes"][0]["name"] == HOSTILE


def test_script_json_refuses_nan():
    with pytest.raises(ValueError, match="JSON"):
        script_json([float("nan")])


def test_nothing_is_loaded_from_outside(page):
    for tag, attrs in Tags(page).found:
        for name in ("src", "href", "srcset", "data", "action"):
            value = attrs.get(name) or ""
            assert not re.match(r"\s*(https?:)?//", value), (tag, value)
    policy = next(a for a in Tags(page).named("meta") if "http-equiv" in a)
    assert policy["content"].startswith("default-src 'none'")


def test_page_is_small_enough_with_many_classes():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(60), 3000)
    evaluation = evaluate(rng.integers(0, 60, 3000), probs)
    page = html(evaluation)
    assert len(page.encode()) < 8 * 2**20
    assert_mentions(page, "confusion matrix", "left out")
    assert_mentions(page, "50 largest", "60 classes")


def test_tables_have_scoped_headers(page):
    headers = Tags(page).named("th")
    assert headers
    assert all(attrs.get("scope") in ("row", "col") for attrs in headers)


def test_charts_and_slider_have_names(page):
    charts = [a for a in Tags(page).named("div") if "chart" in (a.get("class") or "").split()]
    assert len(charts) == 4
    assert all(a["role"] == "img" and a["aria-label"] for a in charts)
    slider = next(a for a in Tags(page).named("input") if a.get("type") == "range")
    assert slider["aria-label"]


def test_missing_figure_and_missing_curves_are_said(binary):
    figures = {
        **binary.figures,
        "nll": Figure("nll", None, "", why="infinite: 3 rows"),
        "ece_ew": Figure("ece_ew", None, "", why="nothing to count"),
    }
    bare = replace(
        binary, figures=figures, curves={}, bins={}, per_class=(), confusion=np.zeros((0, 0))
    )
    page = html(bare)
    assert_mentions(page, "not given", "infinite: 3 rows")
    assert_mentions(page, "not given: nothing")
    assert_mentions(page, "curves", "not kept")
    assert_mentions(page, "no bins")
    assert [card["title"] for card in page_data(bare)["cards"]][2] == "Brier score"


@pytest.mark.parametrize("curves", [{"classes": None, "smooth": None}, {"classes": []}])
def test_empty_curves_do_not_break_it(binary, curves):
    assert "not kept" in html(replace(binary, curves=curves))


def test_class_without_rows_has_no_nan(binary):
    probs = np.array([[0.5, 0.3, 0.2]] * 12)
    page = html(evaluate([0, 1] * 6, probs))
    assert "NaN" not in re.findall(r'id="charts">(.*?)</script>', page, re.S)[0]


def test_write_is_whole_or_nothing(binary, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr(Path, "replace", _fail)
    with refuses(InputError, "disk full", "free"):
        write_html(binary, path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    monkeypatch.undo()
    assert write_html(binary, str(path)) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def _fail(*_):
    raise OSError("disk full")


def test_write_survives_a_name_without_utf8_form(binary, tmp_path):
    path = write_html(binary, tmp_path / "report.html", title="lone \ud800 surrogate")
    assert "&#55296;" in path.read_text(encoding="utf-8")


def test_write_needs_a_folder(binary, tmp_path):
    with pytest.raises(InputError, match="create it first"):
        write_html(binary, tmp_path / "missing" / "report.html")


def test_a_value_without_an_interval_has_an_empty_cell(binary):
    figures = {**binary.figures, "nll": Figure("nll", 0.25, ""), "accuracy": Figure("x", 0.5, "")}
    data = page_data(replace(binary, figures=figures))
    row = next(row for row in data["metrics"] if row["value"] == "0.2500")
    assert row["interval"] == ""
    assert [card["interval"] for card in data["cards"]][1:] == ["", ""]
    assert "<td>0.2500</td><td></td>" in html(replace(binary, figures=figures))


def test_one_row_is_not_rows():
    one = evaluate([0, 1, 1], [0.2, 0.4, 0.7], groups=["a", "b", "b"]).groups["a"]
    page = html(one).split("<script")[0]
    assert "1 row, 2 classes" in page
    assert "1 rows" not in page
