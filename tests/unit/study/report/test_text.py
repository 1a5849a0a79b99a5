"""A study in the terminal: one compact table, the promises, and no surprise for the terminal."""

from dataclasses import replace

import pytest
from tests.sentences import assert_mentions
from tests.unit.study.report.study_cases import (
    a_hostile_study,
    a_lonely_study,
    a_plain_study,
    a_study,
    a_wide_study,
)

from calibrant.study.report.text import render_study


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize(
    "case", [a_study, a_plain_study, a_lonely_study, a_hostile_study, a_wide_study]
)
def test_every_study_fits_the_terminal(case, width):
    shown = render_study(case(), width=width)
    assert max(map(len, shown.splitlines())) <= width
    assert "None" not in shown.split()


def test_headline_table_promises_truth_and_notes_come_in_this_order():
    shown = render_study(a_study(), width=110)
    parts = [
        "AdaFocal with temperature scaling was chosen.",
        "Candidate ",
        "Class “item_defective”: precision is at least 85 %: promise kept",
        "Class “missing_parts”: precision is at least 99.9 %: cannot be promised",
        "True error",
        "Note: 12 log rows",
    ]
    places = [shown.index(part) for part in parts]
    assert places == sorted(places)


def test_the_table_holds_the_figures_of_the_paper():
    whole = a_study()
    lines = render_study(whole, width=110).splitlines()
    row = next(line for line in lines if line.startswith("AdaFocal (chosen)"))
    names = ("accuracy", "precision_macro", "recall_macro", "f1_macro", "nll", "ece_ew", "mce")
    own = [f"{whole.best.test[name].value:.3f}" for name in names]
    values = row.removeprefix("AdaFocal (chosen)").replace("*", " ").split()
    assert values == [*own, f"{whole.best.scaled['ece_ew'].value:.3f}"]


def test_the_best_is_marked_and_the_reference_never():
    lines = render_study(a_study(), width=110).splitlines()
    assert sum("*" in line for line in lines[:30]) >= 2
    reference = next(line for line in lines if line.startswith("HistGradientBoosting"))
    assert "*" not in reference


def test_failed_candidates_are_told():
    shown = render_study(a_lonely_study(), width=100)
    assert_mentions(shown, "Cross-entropy could not", "Ran out of memory.")


def test_what_could_steer_the_terminal_is_replaced():
    shown = render_study(replace(a_plain_study(), notes=("red\x1b[31m",)), width=100)
    assert "\x1b" not in shown
