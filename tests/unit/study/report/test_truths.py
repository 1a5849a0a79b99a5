"""Sentences of a study's report that must not say more than was measured."""

from dataclasses import replace

import pytest
from tests.sentences import assert_mentions
from tests.unit.study.report.study_cases import a_plain_study, a_study

from calibrant.results import Floor, Interval
from calibrant.study.report.headline import headline_data, promise_data, several_words
from calibrant.study.report.page import chart_numbers, study_html
from calibrant.study.report.story import story
from calibrant.study.report.tables import candidate_rows, scope_data, truth_data
from calibrant.study.report.text import render_study
from calibrant.study.report.wording import baseline_of, loss_name


def flat(text):
    return " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())


def with_figure(found, name="ece_ew", **changes):
    figures = {**found.figures, name: replace(found.figures[name], **changes)}
    return replace(found, figures=figures)


def with_error(candidate, value, low=None, high=None, **changes):
    """A candidate whose own calibration error is this."""
    interval = None if low is None else Interval(low, high)
    return replace(
        candidate, test=with_figure(candidate.test, value=value, interval=interval), **changes
    )


def with_first(result, **changes):
    """The study with changes to its first candidate, cross-entropy."""
    first, *rest = result.candidates
    return replace(result, candidates=(replace(first, **changes), *rest))


def with_verdicts(point, check, fresh):
    found = replace(point, check=replace(point.check, verdict=check))
    return replace(found, fresh=None if fresh is None else replace(point.fresh, verdict=fresh))


# The rows that check a promise


def test_a_promise_is_checked_on_all_test_rows_not_only_those_in_scope():
    whole = a_study()
    point = replace(whole.points[0], check=replace(whole.points[0].check, n=2000))
    assert whole.calibrated.n == 700
    one = replace(whole, points=(point,))
    where = promise_data(point, one)["checks"][0]["where"]
    assert_mentions(where, "2,000 golden test rows", "chose nothing")
    shown = flat(study_html(one))
    assert_mentions(shown, "2,000 golden test rows", "no class")
    assert_mentions(flat(render_study(one)), "2,000 golden test rows", "chose nothing")


def test_without_a_point_nothing_is_said_to_check_it():
    whole = a_study()
    lost = replace(whole, points=(whole.points[1],))
    assert "then check it" not in study_html(lost)


# The calibrator that the user named


def test_no_calibrator_asked_for_is_not_told_as_none_helped():
    whole = a_study()
    one = replace(whole, method="identity", choice=None, calibrated=whole.best.test)
    told = dict(story(one))["Calibration"]
    assert "helped" not in told
    assert_mentions(told, "no calibrator", "asked", "AdaFocal")
    assert f"log loss {whole.best.test['nll'].value:.4f}" in told
    chosen = dict(story(replace(whole, method="identity")))["Calibration"]
    assert_mentions(chosen, "no calibrator", "helped AdaFocal")


def test_a_calibrator_that_was_asked_for_is_told_with_what_it_did():
    told = dict(story(replace(a_study(), choice=None)))["Calibration"]
    start = "Temperature scaling, asked for and fitted on 1,400 calibrate rows, takes the log loss"
    assert told.startswith(start)


# Chance and the test


@pytest.mark.parametrize(
    ("value", "wrong", "mentions"),
    [
        (0.02, False, ("no more than", "chance explains")),
        (0.04, False, ("finds no miscalibration", "p = 0.312")),
        (0.02, True, ("finds miscalibration", "p = 0.312")),
        (0.04, None, ("too few", "test of calibration")),
    ],
)
def test_chance_explains_an_error_only_where_the_error_is_within_it(value, wrong, mentions):
    whole = a_study()
    test = with_figure(whole.candidates[0].test, value=value, floor=Floor(0.015, 0.03))
    test = replace(test, verdict=replace(test.verdict, miscalibrated=wrong, p_value=0.312))
    paragraph = dict(story(with_first(whole, test=test)))["The usual way"]
    assert_mentions(paragraph, *mentions)
    assert ("chance explains" in paragraph) == ("chance explains" in mentions)


# Fresh rows overrule the test rows


def test_fresh_rows_that_keep_a_promise_overrule_test_rows_and_both_are_said():
    whole = a_study()
    point = with_verdicts(whole.points[0], "broken", "kept")
    one = replace(whole, points=(point,))
    found = headline_data(one)
    assert found["badge"] == (
        "No miscalibration found; promise kept on fresh rows, broken on the test rows"
    )
    assert found["state"] == "good"
    assert found["promises"][0]["badge"] == "Kept on fresh rows, broken on the test rows"
    assert_mentions(found["headline"], "broken on the test", "kept on fresh")
    two = headline_data(replace(whole, points=(point, whole.points[1])))
    assert_mentions(two["headline"], "1 is kept", "broken on the test")
    assert "broken" not in two["badge"]
    both = headline_data(replace(whole, points=(point, whole.points[0])))
    assert_mentions(both["badge"], "all promises kept", "1 of them broken")


@pytest.mark.parametrize(
    ("check", "fresh", "badge"),
    [
        ("kept", "broken", "Broken on fresh rows, kept on the test rows"),
        ("broken", "broken", "Promise broken"),
        ("broken", "undecidable", "Promise broken"),
        ("broken", None, "Promise broken"),
        ("kept", "undecidable", "Promise kept"),
        ("undecidable", "undecidable", "Promise made"),
    ],
)
def test_the_last_word_on_a_promise_is_the_last_that_was_decided(check, fresh, badge):
    whole = a_study()
    point = with_verdicts(whole.points[0], check, fresh)
    found = headline_data(replace(whole, points=(point,)))
    assert found["promises"][0]["badge"] == badge
    assert (found["badge"] == "A promise is broken") == badge.startswith(("Broken", "Promise b"))


# Logs and golden rows


@pytest.mark.parametrize(
    ("logs", "mentions"),
    [
        ((0.09, 0.08, 0.1), ("too bad.",)),
        ((0.01, 0.005, 0.015), ("too good.",)),
        ((0.055, 0.045, 0.065), ("do not tell", "apart")),
        ((0.05, 0.04, 0.06), ("do not tell", "apart")),
        ((0.09, None, None), ("do not tell", "apart")),
    ],
)
def test_logs_look_better_or_worse_only_where_the_intervals_part(logs, mentions):
    first = with_error(a_study().candidates[0], 0.05, 0.04, 0.06)
    value, low, high = logs
    interval = None if low is None else Interval(low, high)
    log_test = with_figure(first.log_test, value=value, interval=interval)
    told = dict(story(with_first(a_study(), test=first.test, log_test=log_test)))
    assert_mentions(told["Logs and golden rows"], *mentions)


# Several seeds


def seeded(errors):
    """A study of cross-entropy and focal loss with these errors for each seed."""
    whole = a_study()
    ce, focal = whole.candidates[0], whole.candidates[2]
    made = [
        with_error(one, value, value - 0.001, value + 0.001, seed=seed)
        for one, values in zip((ce, focal), errors, strict=True)
        for seed, value in enumerate(values)
        if value is not None
    ]
    return replace(whole, candidates=tuple(made), chosen=len(made) - 1)


def test_losses_are_compared_over_equal_seeds():
    # The best focal seed beats the first of cross-entropy; on average focal loss is worse.
    told = dict(story(seeded([(0.05, 0.01, 0.03), (0.06, 0.02, 0.04)])))["Focal loss"]
    assert_mentions(told, "not help", "Focal, gamma 3", "3 seeds")
    assert_mentions(told, "error is 0.0400", "instead of 0.0300")
    assert "overlap" not in told


def test_a_seed_that_only_one_of_two_losses_has_is_not_compared():
    told = dict(story(seeded([(0.05, None), (0.06, 0.01)])))["Focal loss"]
    assert_mentions(told, "not help")
    assert_mentions(told, "error is 0.0600", "instead of 0.0500")
    alone = dict(story(seeded([(None, 0.05), (0.06, None)])))["Focal loss"]
    assert "help" not in alone
    assert alone.endswith("accuracy.")


def test_overlap_is_counted_by_seed():
    told = dict(story(seeded([(0.05, 0.03), (0.0505, 0.01)])))["Focal loss"]
    assert "helps here" in told
    assert_mentions(told, "overlap", "1 of the 2 seeds")


def test_the_chosen_model_stands_beside_cross_entropy_of_its_seed():
    result = seeded([(0.05, 0.01), (0.06, 0.02)])
    assert baseline_of(result).seed == 1
    assert baseline_of(replace(result, chosen=2)).seed == 0
    assert_mentions(dict(story(result))["The usual way"], "Cross-entropy (seed 1)", "usual loss")


# The out-of-scope rule, several classes, the truth, names


def test_the_rule_is_told_with_its_exception_and_its_rows():
    words = scope_data(a_study().out_of_scope)["words"]
    assert_mentions(words, "hardly any row", "whole")
    assert_mentions(words, "in-scope test rows", "stops 4.7 %")
    assert_mentions(flat(render_study(a_study())), "stops 4.7 %", "in-scope test rows")


def test_several_deciding_classes_are_told_once():
    whole = a_study()
    first = whole.points[0]
    view = replace(first.view, result=replace(first.result, of="missing_parts"))
    two = replace(whole, points=(first, replace(first, view=view)))
    for shown in (study_html(two), render_study(two)):
        assert flat(shown).count("Several classes decide: a row that more than one") == 1
    noted = replace(two, notes=("Several classes decide: so it is",))
    assert several_words(noted) == ""
    for shown in (study_html(noted), render_study(noted)):
        assert flat(shown).count("Several classes decide") == 1


def test_one_deciding_class_is_not_told_as_several():
    whole = a_study()  # of two promises that decide only one could be made
    assert several_words(whole) == ""
    assert several_words(replace(whole, points=(whole.points[0], whole.points[2]))) == ""
    assert several_words(a_plain_study()) == ""


def test_the_rows_behind_the_true_errors_are_said():
    whole = a_study()
    known = replace(whole, truth=replace(whole.truth, rows=100_000, each=40_000))
    said = "are from the first 40,000 of the fresh messages that belong to a class."
    assert said in truth_data(known)["each"]
    assert said in flat(render_study(known))
    assert said in flat(study_html(known))
    assert truth_data(whole)["each"] == ""
    assert known.truth.to_dict()["each"] == 40_000


def test_the_reference_keeps_its_capitals():
    whole = a_study()
    reference = replace(whole.candidates[-1], loss="HistGradientBoosting")
    one = replace(whole, candidates=(*whole.candidates[:-1], reference))
    assert loss_name("HistGradientBoosting") == "HistGradientBoosting"
    assert "HistGradientBoosting" in render_study(one, width=110)
    assert "HistGradientBoosting" in study_html(one).replace("<wbr>", "")
    assert "Histgradientboosting" not in study_html(one)


# Raced models, and models that learned nothing


def a_raced_study():
    """Boosting won the race; an MLP was trained with cross-entropy after it, worse calibrated."""
    whole = a_study(golden=False, losses=("ce", "focal:gamma=3"))
    usual, focal, *_ = whole.candidates
    names = {"model": "boosting", "raced": True}
    ours = with_error(usual, 0.0590, 0.05, 0.07, **names)
    better = with_error(focal, 0.0029, 0.001, 0.01, **names)
    other = with_error(usual, 0.0849, 0.08, 0.09, model="mlp", raced=True)
    made = (ours, other, better)
    return replace(whole, candidates=made, chosen=0, winner="boosting", truth=None)


def test_losses_are_compared_with_cross_entropy_of_the_same_model():
    told = dict(story(a_raced_study()))["Focal loss"]
    assert_mentions(told, "0.0029 instead of 0.0590")
    assert "0.0849" not in told


def test_the_networks_of_an_average_are_of_its_model():
    raced = a_raced_study()
    both = replace(raced.candidates[0], way="ensemble", members=(0,))
    told = dict(story(replace(raced, candidates=(*raced.candidates, both))))["Ensembles"]
    assert "network alone" in told


def test_a_study_with_one_candidate_names_its_model_and_loss():
    whole = a_raced_study()
    one = replace(whole.candidates[0], raced=False)
    alone = replace(whole, candidates=(one,))
    assert_mentions(headline_data(alone)["headline"], "boosted trees, cross-entropy with")
    several = replace(whole, candidates=(one, replace(whole.candidates[2], raced=False)))
    assert "boosted" not in headline_data(several)["headline"].lower()


def test_narrow_names_tell_raced_candidates_apart():
    whole = a_raced_study()
    mixed = replace(whole.candidates[0], way="weighted", members=(0, 0, 0))
    drawn = chart_numbers(replace(whole, candidates=(*whole.candidates, mixed)))["candidates"]
    assert [one["short"] for one in drawn] == [
        "Cross-entropy", "MLP", "Focal, gamma 3", "mix of 3",
    ]  # fmt: skip


def test_without_a_calibrator_nothing_is_shown_or_compared_twice():
    whole = a_raced_study()
    plain = replace(whole, method="identity", calibrated=whole.candidates[0].test)
    assert "What it costs" not in dict(story(plain))
    page = study_html(plain)
    assert 'id="chart-reliability-best"' in page
    assert 'id="chart-reliability-bundle"' not in page
    panels = [page.count(f'id="chart-histogram-{k}"') for k in range(4)]
    assert panels == [1, 1, 1, 0]  # one for each candidate, none for the bundle
    calibrated = study_html(whole)
    assert 'id="chart-reliability-bundle"' in calibrated
    assert 'id="chart-histogram-3"' in calibrated
    assert_mentions(dict(story(whole))["What it costs"], "same model")


def with_constant(result, k):
    """The study with a candidate that says the class shares, and so is well calibrated."""
    candidates = list(result.candidates)
    constant = with_error(candidates[k], 0.0001, 0.0, 0.001)
    test = with_figure(with_figure(constant.test, "mce", value=0.0001), "nll", value=9.0)
    candidates[k] = replace(constant, test=test, scaled=test, learned=False)
    return replace(result, candidates=tuple(candidates))


def test_a_candidate_that_learned_nothing_is_neither_praised_nor_marked_as_best():
    whole = with_constant(a_raced_study(), 2)
    told = dict(story(whole))["Focal loss"]
    assert_mentions(told, "learned nothing", "class shares")
    assert "helps here" not in told
    rows = candidate_rows(whole)
    assert not any(cell["best"] for cell in [*rows[2]["cells"], *rows[2]["scaled"]])
    assert sum(row["cells"][-2]["best"] for row in rows) == 1  # the best of those that learned
    assert_mentions(rows[2]["note"], "learned nothing")
    assert_mentions(flat(render_study(whole, width=120)), "(learned nothing)")


def test_cross_entropy_that_learned_nothing_is_no_measure_of_other_losses():
    whole = with_constant(a_raced_study(), 0)
    sections = dict(story(whole))
    assert "instead of" not in sections["Focal loss"]
    assert_mentions(sections["The usual way"], "learned nothing")
