"""Text for the terminal: what comes first, what is left out, and names that could do harm."""

from dataclasses import replace

import numpy as np
import pytest

from calibrant.metrics import evaluate
from calibrant.reports import render_comparison, render_text
from calibrant.results import Comparison, Difference, Figure, Interval
from calibrant.testing import WORLDS


@pytest.fixture(scope="module")
def binary():
    draw = WORLDS["binary"].draw(1500, 0)
    return evaluate(draw.labels, draw.probs)


def test_verdict_comes_first(binary):
    lines = render_text(binary, width=200).splitlines()
    text = binary.verdict.text
    assert lines[0] == text[0].upper() + text[1:] + "."
    assert lines[1] == "1,500 rows, 2 classes. Judged: the probability of class “1”."


def test_every_figure_has_one_line_at_80_columns(binary):
    text = render_text(binary, width=80)
    assert max(map(len, text.splitlines())) <= 80
    ece = binary["ece_ew"]
    line = next(line for line in text.splitlines() if line.startswith("ECE, equal width"))
    assert f"{ece.value:.4f}" in line
    assert f"{ece.interval.low:.4f} to {ece.interval.high:.4f}" in line
    assert f"{ece.floor.mean:.4f} (≤ {ece.floor.q95:.4f})" in line


def test_missing_figure_says_why(binary):
    figures = {**binary.figures, "nll": Figure("nll", None, "", why="infinite: 3 rows")}
    text = render_text(replace(binary, figures=figures))
    assert "NLL (log loss): not given: infinite: 3 rows." in text


def test_class_table_only_for_few_classes():
    few, many = WORLDS["long_tailed"].draw(400, 0), np.full((60, 25), 1 / 25)
    assert "Precision" in render_text(evaluate(few.labels, few.probs))
    text = render_text(evaluate(np.arange(60) % 25, many))
    assert "The table of 25 classes is left out here." in text


def test_groups_and_notes_are_shown():
    draw = WORLDS["binary"].draw(600, 0)
    groups = np.where(np.arange(600) % 2, "north", "south")
    evaluation = evaluate(draw.labels, draw.probs, groups=groups)
    text = render_text(replace(evaluation, notes=("rows were skipped",)))
    assert "north" in text
    assert "south" in text
    assert text.endswith("Note: Rows were skipped.")


def test_names_cannot_steer_the_terminal():
    names = ["\x1b[31mred\x07", "[bold]x[/bold]"]
    evaluation = evaluate([names[0], names[1]] * 20, [0.2, 0.7] * 20, classes=names)
    text = render_text(evaluation)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]x[/bold]" in text


def test_colour_only_on_request(binary):
    assert "\x1b[" not in render_text(binary)
    assert "\x1b[" in render_text(binary, color=True)


def comparison(**differences):
    return Comparison(500, ("old", "new"), "positive", differences, "no clear winner")


@pytest.mark.parametrize(
    ("name", "low", "high", "winner"),
    [
        ("nll", -0.2, -0.1, "new"),
        ("nll", 0.1, 0.2, "old"),
        ("accuracy", 0.1, 0.2, "new"),
        ("accuracy", -0.2, -0.1, "old"),
        ("accuracy", -0.1, 0.2, ""),
    ],
)
def test_comparison_names_the_better_model(name, low, high, winner):
    found = Difference(name, 0.5, 0.5, (low + high) / 2, "", Interval(low, high), 0.0004)
    text = render_comparison(comparison(**{name: found}))
    assert text.splitlines()[0] == "No clear winner."
    line = text.splitlines()[-1]
    assert "< 0.001" in line
    assert line.endswith(winner or "0.001")


def test_comparison_says_why_a_difference_is_missing():
    found = Difference("nll", None, 0.4, None, "", why="infinite for old")
    assert "not given: infinite for old" in render_comparison(comparison(nll=found))
