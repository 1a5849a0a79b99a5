"""Text for the terminal: what comes first, what is left out, and names that could do harm."""

from dataclasses import replace

import numpy as np
import pytest
from tests.sentences import assert_mentions

from calibrant.metrics import evaluate
from calibrant.reports import render_comparison, render_text
from calibrant.reports.text_tables import break_text
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
    assert_mentions(lines[1], "1,500 rows", "2 classes", "class “1”")


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
    assert_mentions(text, "NLL (log loss): not given", "infinite: 3 rows")


def test_class_table_only_for_few_classes():
    few, many = WORLDS["long_tailed"].draw(400, 0), np.full((60, 25), 1 / 25)
    assert "Precision" in render_text(evaluate(few.labels, few.probs))
    text = render_text(evaluate(np.arange(60) % 25, many))
    assert_mentions(text, "25 classes", "left out")


def test_groups_and_notes_are_shown():
    draw = WORLDS["binary"].draw(600, 0)
    groups = np.where(np.arange(600) % 2, "north", "south")
    evaluation = evaluate(draw.labels, draw.probs, groups=groups)
    text = render_text(replace(evaluation, notes=("rows were skipped",)))
    assert "north" in text
    assert "south" in text
    assert_mentions(text, "Note: Rows were skipped.")


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
    assert_mentions(render_comparison(comparison(nll=found)), "not given", "infinite for old")


def test_a_value_without_an_interval_has_an_empty_cell(binary):
    figures = {**binary.figures, "nll": Figure("nll", 0.25, "")}
    text = render_text(replace(binary, figures=figures))
    line = next(line for line in text.splitlines() if line.startswith("NLL"))
    assert line.split() == ["NLL", "(log", "loss)", "0.2500"]
    figures["nll"] = replace(figures["nll"], why="one row has no spread")
    text = render_text(replace(binary, figures=figures))
    assert_mentions(text, "NLL (log loss): no interval", "one row")


def test_a_difference_without_an_interval_has_an_empty_cell():
    found = Difference("nll", 0.5, 0.25, -0.25, "")
    line = render_comparison(comparison(nll=found)).splitlines()[-1]
    assert line.split() == ["NLL", "(log", "loss)", "0.5000", "0.2500", "-0.2500"]
    text = render_comparison(comparison(nll=replace(found, why="one row")))
    assert_mentions(text, "no interval", "one row")


def test_one_row_is_not_rows():
    text = render_text(evaluate([0, 1, 1], [0.2, 0.4, 0.7], groups=["a", "b", "b"]).groups["a"])
    assert "1 row, 2 classes." in text
    assert "1 rows" not in text
    found = Difference("nll", 0.5, 0.25, -0.25, "")
    one = replace(comparison(nll=found), n=1)
    assert_mentions(render_comparison(one), "1 row", "both models")


LONG = ("quality_not_adequate", "antidisestablishmentarianism", "others")


def test_long_class_names_break_at_their_separators_or_lose_their_middle():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 300)
    labels = np.array(LONG)[rng.integers(0, 3, 300)]
    text = render_text(evaluate(labels, probs, classes=LONG), width=80)
    lines = [line.split(" ")[0] for line in text.splitlines()]
    assert max(map(len, text.splitlines())) <= 80
    at = lines.index("quality_")
    assert lines[at : at + 3] == ["quality_", "not_", "adequate"]
    assert lines[at + 3].startswith("antid")
    assert "…" in lines[at + 3]
    assert lines[at + 4] == "others"


def test_long_model_names_leave_room_for_the_table():
    found = Difference("accuracy", 0.5, 0.6, 0.1, "", Interval(0.05, 0.15), 0.0004)
    both = replace(comparison(accuracy=found), names=("resnet50_2024-01-02", "vit_huge_14_laion"))
    text = render_comparison(both, width=80)
    assert_mentions(text, "A is resnet50_2024-01-02", "B is vit_huge_14_laion")
    assert text.splitlines()[-1].split()[0] == "Accuracy"
    assert text.splitlines()[-1].endswith(" B")
    assert "vit_huge_14_laion" in render_comparison(both, width=140).splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        (
            "an error of about 7.2 percentage points",
            20,
            ["an error of about", "7.2 percentage", "points"],
        ),
        ("from -0.5 to 1e-05", 6, ["from", "-0.5", "to", "1e-05"]),
        ("release-2024-11.old.2", 9, ["release-", "2024-11.", "old.2"]),
        ("not_adequate/x", 5, ["not_", "ad…e/", "x"]),
    ],
)
def test_cells_break_after_marks_but_not_inside_numbers(text, width, lines):
    assert break_text(text, width) == lines


@pytest.mark.parametrize("turned", [False, True])
def test_scores_of_the_other_class_are_suspected_where_rows_rank_the_wrong_way_round(turned):
    draw = WORLDS["binary"].draw(500, 0)
    labels = 1 - draw.labels if turned else draw.labels
    text = " ".join(render_text(evaluate(labels, draw.probs)).split())
    assert ("are these the scores of another class?" in text) == turned
