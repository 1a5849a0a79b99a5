"""The documentation: every public name is there, and what the pages show is what happens."""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docs.formulas import _described, drawn, with_tokens
from docs.generate import benchmarks_page, guarantees_page, verb_page, verbs
from docs.warm import Warm, cold

from docs import blocks, made_from

DOCS = Path(__file__).resolve().parents[2] / "docs"
GENERATED = {
    "guarantees.md",
    "benchmarks.md",
    "calibrator-figures.md",
    "threshold-figures.md",
}
PAGES = sorted(page for page in DOCS.glob("*.md") if page.name not in GENERATED)
PAGES += sorted((DOCS / "verbs").glob("*.md"))
PACKAGES = (
    "calibrant",
    "calibrant.bundle",
    "calibrant.calibrators",
    "calibrant.boosting",
    "calibrant.client",
    "calibrant.errors",
    "calibrant.metrics",
    "calibrant.reports",
    "calibrant.data",
    "calibrant.data.return_reasons",
    "calibrant.losses",
    "calibrant.models",
    "calibrant.ood",
    "reproductions",
    "calibrant.scores",
    "calibrant.serving",
    "calibrant.stats",
    "calibrant.store",
    "calibrant.study",
    "calibrant.testing",
    "calibrant.thresholds",
    "calibrant.training",
)


def mentions(name, text):
    return re.search(rf"(?<![\w]){re.escape(name)}(?!\w)", text) is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_docs(package):
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    missing = [n for n in importlib.import_module(package).__all__ if not mentions(n, text)]
    assert not missing


@pytest.mark.parametrize("package", PACKAGES[1:])
def test_every_public_function_and_class_has_a_reference_entry(package):
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    entries = {line.rpartition(".")[2] for line in re.findall(r"^::: (\S+)$", text, re.MULTILINE)}
    missing = set(importlib.import_module(package).__all__) - entries
    assert not missing


def test_every_verb_has_words_a_page_and_a_place_in_the_navigation():
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    for verb in verbs():
        page = verb_page(verb)
        assert f"Usage: calibrant {verb}" in page
        for part in ("## Example", "## Output", "## Exit codes", "## Common mistakes"):
            assert part in page, f"{verb}: {part}"
        assert f"cli/{verb}.md" in navigation


def test_every_page_is_in_the_navigation():
    navigation = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    missing = [p.name for p in PAGES if p.parent == DOCS and f" {p.name}\n" not in navigation]
    assert not missing


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    blocks.prepare(folder)
    return folder


@pytest.fixture(scope="module")
def warm():
    start = Warm(blocks.environment())
    yield start
    start.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(
    page, demo, warm, tmp_path, monkeypatch
):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    folder = shutil.copytree(demo, tmp_path / "page")
    for done in blocks.run_page(page.read_text(encoding="utf-8"), folder, warm):
        where = f"{page.name}, line {done.block.line}"
        assert done.exit_code == done.block.exit_code, f"{where}:\n{done.output}"
        if done.block.shown is not None:
            shown = f"{where} shows\n{done.block.shown}\nbut this came:\n{done.output}"
            assert blocks.matches(done.block.shown, done.output), shown


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if made_from.is_up_to_date():  # `make docs` has just built it, by the same commands
        return made_from.SITE
    folder = tmp_path_factory.mktemp("site")
    root = DOCS.parent
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    for step in ([sys.executable, str(DOCS / "generate.py")], command):
        done = subprocess.run(step, cwd=root, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]+src="(https?:[^"]+)', text)
        loaded += re.findall(r'<link[^>]+href="(https?:[^"]+)', text)
        assert not loaded, page.name


def test_a_site_is_built_again_when_anything_it_is_made_from_has_changed(tmp_path):
    site, page = tmp_path / "site", tmp_path / "docs/a.md"
    for folder in (site, page.parent):
        folder.mkdir()
    page.write_text("one")
    assert not made_from.is_up_to_date(site, tmp_path)
    made_from.remember(site, tmp_path)
    assert made_from.is_up_to_date(site, tmp_path)
    page.write_text("two")
    assert not made_from.is_up_to_date(site, tmp_path)
    page.write_text("one")
    assert made_from.is_up_to_date(site, tmp_path)
    page.rename(page.with_name("b.md"))
    assert not made_from.is_up_to_date(site, tmp_path)


def test_make_docs_builds_the_site_as_the_tests_do():
    makefile = (DOCS.parent / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^docs:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)[1]
    steps = [line.strip().removeprefix("$(BIN)/") for line in recipe.splitlines()]
    built = ["python docs/generate.py", "mkdocs build --strict --quiet"]
    assert steps == [*built, "python docs/made_from.py"]


def test_every_formula_is_drawn(site):
    text = "".join(page.read_text(encoding="utf-8") for page in site.glob("*.html"))
    assert text.count('<svg class="formula"') > 50
    assert "⟦math" not in text
    assert '<code class="formula"' not in text
    assert ":math:" not in text


def test_a_formula_that_cannot_be_drawn_is_shown_as_text():
    assert '<code class="formula">\\nonsense{x}</code>' in drawn(r"\nonsense{x}")
    assert "<svg" in drawn(r"\frac{1}{N}\sum_i |y_i - s_i|", display=True)


def test_formulas_of_a_docstring_are_found_however_they_are_written():
    text = (
        "Loss.\n\n$$ L = -\\log p $$\n\n$p$ and :math:`q`.\n\nExamples\n--------\n>>> '$5 or $6'\n"
    )
    found = with_tokens(text)
    assert found.count("⟦mathd:") == 1
    assert found.count("⟦mathi:") == 2
    assert "'$5 or $6'" in found


def test_names_that_share_their_words_get_an_entry_each():
    text = (
        "Parameters\n----------\nlow,\nhigh : bounds\n    of all\nname : a name\n\nlow, high : left"
    )
    entry = "{}\n    bounds\n    of all\n"
    expected = f"{entry.format('low')}{entry.format('high')}name\n    a name\n"
    assert expected in _described(text)


def run(text, folder):
    return list(blocks.run_page(text, folder))


def test_a_wrong_exit_code_a_wrong_word_and_a_wrong_number_are_found(tmp_path):
    (done,) = run("```bash\ncalibrant evaluate nowhere.csv\n```\n", tmp_path)
    assert (done.exit_code, done.block.exit_code) == (2, 0)
    (done,) = run("An exit code 2:\n\n```bash\ncalibrant evaluate nowhere.csv\n```\n", tmp_path)
    assert done.exit_code == done.block.exit_code == 2
    assert not blocks.matches("two words", "two birds")
    assert not blocks.matches("value 0.50", "value 0.61")
    assert not blocks.matches("one", "one two")
    assert not blocks.matches("one\n...\nfour\n", "one two three")
    assert blocks.matches("one\n...\nthree\n", "one two three")
    assert blocks.matches("value 0.5001", "value  0.5000")


def test_a_page_that_is_refreshed_has_every_digit_and_its_own_line_breaks():
    shown = "value 0.5001\n  of 1,000 ──── rows\n...\nend 7\n"
    came = "value 0.5000 of 1,010 rows, and more, end 7"
    assert blocks.renewed(shown, came) is None  # "rows," is another word
    came = "value 0.5000 of 1,010 rows ─── and more, end 7"
    assert blocks.renewed(shown, came) == "value 0.5000\n  of 1,010 ──── rows\n...\nend 7\n"
    assert blocks.renewed(came, came) == came


def test_a_warm_start_is_a_process_like_a_cold_one(tmp_path, warm):
    here = {**blocks.environment(), "CALIBRANT_JSON": "1"}
    for words in (["evaluate", "--help"], ["evaluate", "nowhere.csv"], ["compare"]):
        for env in (blocks.environment(), here):
            once = cold(words, tmp_path, env)
            assert warm(words, tmp_path, env) == once  # the first time cold as well
            assert warm(words, tmp_path, env) == once
    folder = Path.cwd()
    assert warm(["demo", "--scores"], tmp_path, blocks.environment())[0] == 0
    assert (tmp_path / "runs/demo/scores.csv").exists()
    assert Path.cwd() == folder


def test_broken_python_is_found(tmp_path):
    with pytest.raises(NameError):
        run("```python\nnot_defined\n```\n", tmp_path)
    assert run("```py-no-run\nnot_defined\n```\n", tmp_path) == []


def test_files_shown_on_a_page_are_there_for_its_code(tmp_path):
    text = '```text title="a.txt"\nhello\n```\n\n```python\nprint(open("a.txt").read())\n```\n'
    (done,) = run(text, tmp_path)
    assert done.output.strip() == "hello"


def test_the_page_of_guarantees_has_every_cell_and_says_how_to_make_it():
    assert "make guarantees" in guarantees_page(None)
    cell = {"what": "interval of ks", "world": "even", "truth": 0.03, "n": 1000, "nominal": 0.95}
    low = {**cell, "n": 300, "coverage": 0.912}
    tests = [
        {"what": "false alarms", "world": "calibrated", "n": 50, "nominal": 0.05, "rate": 0.048}
    ]
    page = guarantees_page(
        {
            "date": "2026-01-01",
            "repetitions": 1000,
            "machine": "a machine",
            "cells": [{**cell, "coverage": 0.973}, low],
            "tests": tests,
        }
    )
    for part in ("1,000 repetitions", "| even | 0.03 | 95% | 91.2% | 97.3% |", "4.8%"):
        assert part in page
    assert "Lowest cell of 2: interval of ks (even, n = 300) with 91.2%" in page


def test_a_missed_goal_stays_on_the_page_of_benchmarks():
    goal = {"goal": "fast", "measured": 18.0, "limit": 15.0, "unit": "times", "sense": "below"}
    page = benchmarks_page([{"name": "a", "goals": [{**goal, "ratio": 1.2, "met": False}]}])
    assert "**missed** (1.20 of the limit)" in page
    assert "make bench" in benchmarks_page([])
