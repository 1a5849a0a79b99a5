"""Ensembles and MC dropout in a study's report: named, explained, and compared with their parts."""

import pytest
from tests.sentences import assert_mentions
from tests.unit.study.report.study_cases import a_study, an_averaged_study
from tests.unit.study.report.test_page import body, words

from calibrant.study.report.page import chart_numbers, study_html
from calibrant.study.report.story import averages, story, way_sentences
from calibrant.study.report.tables import candidate_rows
from calibrant.study.report.text import render_study
from calibrant.study.report.wording import baseline_of


def test_candidates_are_called_by_loss_seed_and_way():
    rows = candidate_rows(an_averaged_study())
    assert [row["name"] for row in rows[5:10]] == [
        "Focal, gamma 3", "Focal, gamma 3 (seed 1)", "Focal, gamma 3, MC dropout (20 passes)",
        "Focal, gamma 3 (seed 1), MC dropout (20 passes)", "Focal, gamma 3, ensemble of 2",
    ]  # fmt: skip
    assert rows[4]["epochs"] == "–"
    assert rows[4]["weights"] == "2,500,000"
    assert rows[10]["lacking"] == "made"


def test_the_page_and_the_terminal_say_what_an_average_is():
    sentences = way_sentences(an_averaged_study())
    assert len(sentences) == 2
    page = study_html(an_averaged_study())
    shown = " ".join(render_study(an_averaged_study(), width=100).split())
    for one in sentences:
        assert one in words(page)
        assert one in shown
    assert "undefined" not in body(page)
    assert_mentions(shown, "AdaFocal, ensemble of 2", "could not", "An ensemble needs")
    assert way_sentences(a_study()) == []
    assert averages(a_study()) == []


def test_the_story_puts_an_average_beside_the_networks_it_is_made_of():
    whole = an_averaged_study()
    told = dict(story(whole))
    best = min(whole.candidates[4], whole.candidates[9], key=lambda one: one.refinement)
    parts = [one for one in whole.candidates[:10] if one.loss == best.loss and one.way == "one"]
    mean = sum(one.scaled["nll"].value for one in parts) / 2
    now = best.scaled["nll"].value
    name = best.name.replace("focal:gamma=3", "Focal, gamma 3")
    assert told["Ensembles"].startswith(f"{name}: after temperature scaling")
    assert_mentions(told["Ensembles"], f"log loss is {now:.4f}", "2 networks", f"{mean:.4f}")
    assert "helps" not in told["Ensembles"]  # no verdict on a difference that may be chance
    assert_mentions(told["MC dropout"], "network alone")


def test_losses_are_compared_by_single_networks_only():
    whole = an_averaged_study()
    assert baseline_of(whole) is whole.candidates[0]
    told = dict(story(whole))["Focal loss"]
    ece = [
        sum(one.test["ece_ew"].value for one in pair) / 2
        for pair in (whole.candidates[5:7], whole.candidates[:2])
    ]
    assert "means over 2 seeds" in told
    assert_mentions(told, f"error is {ece[0]:.4f}", f"instead of {ece[1]:.4f}")


def test_averages_have_no_learning_curve():
    drawn = {one["name"]: one for one in chart_numbers(an_averaged_study())["candidates"]}
    assert drawn["Focal, gamma 3, ensemble of 2"]["epochs"] == []
    assert drawn["Focal, gamma 3"]["epochs"] == [*range(1, 9)]


@pytest.mark.parametrize("width", [80, 100])
def test_averages_fit_the_terminal(width):
    shown = render_study(an_averaged_study(), width=width)
    assert max(map(len, shown.splitlines())) <= width
