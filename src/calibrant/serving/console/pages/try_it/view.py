"""Result of the Try it page, as template values."""

from __future__ import annotations

import math
from typing import Any

from calibrant.client.messages import Input
from calibrant.formatting import percent, printable, sentence
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.model.points import rule_words
from calibrant.serving.console.pages.predictions.wording import make_visible
from calibrant.serving.console.pages.try_it.rules import RuleComparison, check_scope, compare_rules
from calibrant.serving.console.pages.try_it.wording import (
    distance_words,
    headline_words,
    outcome_words,
    redacted_text,
    scope_words,
    score_description,
    score_pair,
    turning_point_words,
    why_words,
)
from calibrant.serving.scoring import ScoredRow

__all__ = ["result_data"]

_MAX_CLASSES = 10
"""Classes whose probability is shown at once; the rest can be expanded."""

_MIN_REACH, _MARGIN, _MAX_REACH = 4.6, 1.5, 60.0
"""Log-odds that a slider spans to each side: at least 1 to 99 %, and both marks with a margin."""


def result_data(
    served: Served, input: Input, row: ScoredRow, point: int | None = None
) -> dict[str, Any]:
    """Gather the result of a row: class, probabilities, decision, reasons and turning points."""
    bundle, calibrator = served.bundle, served.bundle.calibration is not None
    comparisons = compare_rules(bundle, row, point) if bundle.points else []
    scope = check_scope(bundle, row)
    outside = row.out_of_scope is True
    first, rest = _probabilities(served, row)
    return {
        "headline": headline_words(row, comparisons),
        "state": "good" if row.decision in ("act", "clear") else "unknown",
        "label": make_visible(row.label),
        "top": percent(max(row.probs)),
        "calibrated": calibrator,
        "first": first,
        "rest": rest,
        "why": why_words(row, comparisons, calibrator=calibrator),
        "scope": None if scope is None else scope_words(scope),
        "outside": outside,
        "rules": [_rule(each, calibrator, outside) for each in _sort_comparisons(comparisons)],
        "read": None if input.text is None else redacted_text(served, input.text),
        "point": point,
    }


def _probabilities(
    served: Served, row: ScoredRow
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the most probable classes, and all others."""
    order = sorted(range(len(row.probs)), key=lambda i: -row.probs[i])
    bars = [
        {
            "name": make_visible(served.classes[i]),
            "share": percent(row.probs[i]),
            "width": f"{100 * row.probs[i]:.2f}",
        }
        for i in order
    ]
    return bars[:_MAX_CLASSES], bars[_MAX_CLASSES:]


def _sort_comparisons(comparisons: list[RuleComparison]) -> list[RuleComparison]:
    """Sort the deciding rule first, then rules that could change the decision, nearest first."""

    def rank(each: RuleComparison) -> tuple[bool, bool, float]:
        return not each.decided, not each.turns, abs(each.prob - each.rule.point.threshold)

    return sorted(comparisons, key=rank)


def _rule(comparison: RuleComparison, calibrator: bool, outside: bool) -> dict[str, Any]:
    score, threshold = score_pair(comparison)
    point = comparison.rule.point
    says = "met" if comparison.reached != comparison.rule.clears else "not met"
    return {
        "position": comparison.position,
        "does": sentence(rule_words(comparison.rule, calibrated=comparison.calibrated)),
        "name": printable(_name(comparison)),
        "compared": score_description(comparison, calibrator=calibrator),
        "score": score,
        "threshold": threshold,
        "distance": distance_words(comparison),
        "says": "not applied: the row is out of scope" if outside else says,
        "decided": comparison.decided,
        "promise": printable(point.guarantee or f"No promise: {point.why}."),
        "turns": comparison.turns,
        "turning": turning_point_words(comparison),
        "slider": _slider(comparison),
    }


def _name(comparison: RuleComparison) -> str:
    of, clears = comparison.rule.point.of, comparison.rule.clears
    if of is None:
        return "accept predictions of any class"
    return f"{'clear of' if clears else 'act on'} {make_visible(str(of))}"


def _slider(comparison: RuleComparison) -> dict[str, Any]:
    """Return the script's data: both marks as log-odds, and the decision on each side."""
    point = comparison.rule.point
    threshold = point.logit if point.on == "logits" else _log_odds(point.threshold)
    marks = [_clamp_odds(comparison.odds), _clamp_odds(threshold)]
    reach = min(max(_MIN_REACH, *(abs(mark) + _MARGIN for mark in marks)), _MAX_REACH)
    return {
        "score": _clamp_odds(comparison.odds),
        "threshold": _clamp_odds(threshold),
        "number": f"{point.threshold:.6g}",
        "reach": round(reach, 4),
        "reached": comparison.reached,
        "at_most": outcome_words(comparison.at_most),
        "above": outcome_words(comparison.above),
    }


def _log_odds(prob: float) -> float:
    if prob <= 0 or prob >= 1:
        return -math.inf if prob <= 0 else math.inf
    return math.log(prob) - math.log1p(-prob)


def _clamp_odds(odds: float) -> float:
    """Clamp log-odds to a range that JSON can hold."""
    return max(-_MAX_REACH * 10, min(_MAX_REACH * 10, odds))
