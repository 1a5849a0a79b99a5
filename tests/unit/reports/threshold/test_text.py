"""Operating points on the terminal: the promise, the rule that a person can copy, and the no."""

from dataclasses import replace

import numpy as np
import pytest
from tests.sentences import assert_mentions

from calibrant.errors import TargetUnreachable
from calibrant.reports.threshold.text import acting_rule, render_decisions, render_threshold
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

RNG = np.random.default_rng(0)
LABELS = (RNG.random(1200) < 0.4).astype(int)
PROBS = np.clip(RNG.normal(0.3 + 0.4 * LABELS, 0.15), 0.001, 0.999).round(3)


@pytest.fixture
def point():
    return select(LABELS, PROBS, hold=precision >= 0.8)


def flat(text):
    return " ".join(text.split())


def test_a_point(point):
    text = render_threshold(point, notes=["one thing", "one thing"])
    assert_mentions(text, "precision", "at least 80 %", "class '1'", "95 % confidence")
    lines = [line for line in text.splitlines() if line.startswith("precision")]
    assert len(lines) == 1
    assert ">= 80 %" in lines[0]
    assert f"{point['precision'].n:,.0f}" in lines[0]
    assert text.count("Note: One thing.") == 1
    assert "\x1b" not in text
    assert "\x1b[1;32m" in render_threshold(point, color=True)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_it_fits_the_terminal(point, width):
    long = replace(point, of="a_class_with_a_name_that_is_very_long_indeed", notes=("x " * 200,))
    assert max(map(len, render_threshold(long, width=width).splitlines())) <= width


def test_the_rule_can_be_copied(point):
    """Scores have three digits, and the number that is printed parts them as the point does."""
    rule = acting_rule(point)
    assert_mentions(rule, "P(1)", "at least 0.")
    copied = float(rule.rpartition(" ")[2])
    assert (copied <= PROBS).sum() == point.act(PROBS).sum()


def test_the_rule_of_a_threshold_with_many_digits():
    rng = np.random.default_rng(3)
    labels = (rng.random(800) < 0.5).astype(int)
    made = select(labels, rng.beta(1 + 4 * labels, 2), hold=precision >= 0.7)
    assert f"is at least {made.threshold!r}" in acting_rule(made)


def test_the_rule_of_every_row(point):
    assert_mentions(acting_rule(replace(point, threshold=0.0)), "every row")
    assert acting_rule(replace(point, threshold=0.0, of=None)) == "accept every prediction"


def test_the_rule_near_certainty(point):
    certain = replace(point, threshold=1.0, logit=61.5, on="logits", both_kinds=False)
    assert "1 (log-odds 61.5)" in acting_rule(certain)


def test_names_cannot_steer_the_terminal(point):
    text = render_threshold(replace(point, of="red\x1b[31m"))
    assert "\x1b" not in text


def test_no_promise_is_said(point):
    text = render_threshold(replace(point, guarantee=None, why="the rows were seen"))
    assert_mentions(text, "No promise: the rows were seen.")
    assert "optimistic" in text
    assert_mentions(render_threshold(replace(point, guarantee=None, why=None)), "no promise can")


def test_predictions_of_any_class():
    made = select(LABELS, PROBS, hold=accuracy >= 0.9)
    text = render_threshold(made)
    assert_mentions(flat(text), "accept", "highest probability")
    assert_mentions(text, "accepted predictions")
    decisions = {"act": 900, "abstain": 300}
    assert render_decisions(made, decisions, 1200).startswith(
        "Accepted: 900 of 1,200 rows (75.0 %)"
    )


def test_a_cost_is_no_share():
    text = render_threshold(select(LABELS, PROBS, minimise=Cost(1, 5)))
    (line,) = [line for line in text.splitlines() if line.startswith("cost")]
    assert "%" not in line
    assert_mentions(flat(text), "comparison", "decision score of 0.166667 on")


def test_several_classes():
    found = select_each(LABELS, PROBS, hold={0: precision >= 0.8, 1: precision >= 0.8})
    text = render_threshold(found)
    assert_mentions(text, "All 2 promises", "together", "95 % confidence")
    assert render_decisions(found, {0: 5, 1: 7}, 10).count("Flagged as") == 2
    some = select_each(LABELS, PROBS, hold={0: precision >= 0.8, 1: precision >= 0.99999})
    text = flat(render_threshold(some))
    assert_mentions(text, "The promise", "95 % confidence")
    assert_mentions(text, "no threshold", "precision>=0.99999")


def test_a_band():
    band = select_band(LABELS, PROBS, act=precision >= 0.9, clear=npv >= 0.9)
    text = render_threshold(band)
    assert_mentions(text, "Above", "precision", "at least 90 %", "below")
    assert "need no person" in text
    said = flat(render_decisions(band, {"act": 2, "person": 3, "clear": 5}, 10))
    assert_mentions(said, "Acted on: 2 of 10", "(20.0 %)", "Cleared: 5 of 10")
    assert_mentions(said, "person: 3 of 10")


def test_what_helps_when_there_is_none():
    error = TargetUnreachable(
        hold="precision>=0.9", n=100, positives=20, labels_needed=400, positives_needed=80,
        why="too few rows",
    )  # fmt: skip
    text = flat(render_threshold(error))
    assert_mentions(text, "no threshold", "precision>=0.9")
    assert_mentions(text, "300 more rows", "400 in all, 80 positive")
    hopeless = TargetUnreachable(hold="precision>=0.9", n=100, positives=20)
    assert_mentions(render_threshold(hopeless), "separates", "better")


def test_what_follows_from_acting_on_every_row_has_no_interval():
    text = render_threshold(select(LABELS, PROBS, hold=precision >= 0.3, maximise=coverage))
    assert_mentions(text, "every row")
    rates = {line.split()[0]: flat(line) for line in text.splitlines() if " % " in line}
    assert rates["recall"].startswith("recall 100.0 % by definition")
    assert rates["coverage"].startswith("coverage 100.0 % by definition")
    assert rates["specificity"].startswith("specificity 0.0 % by definition")
    assert " % to " in rates["precision"]
    taken = flat(render_threshold(select(LABELS, PROBS, hold=accuracy >= 0.5)))
    assert "Accept every prediction." in taken
    assert "coverage 100.0 % by definition" in taken
