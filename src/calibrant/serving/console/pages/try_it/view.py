"""Result of the Try it page, as template values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from calibrant.client.messages import Input
from calibrant.data.redaction.redactor import redact
from calibrant.formatting import number, percent, printable, quote_name, sentence
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.model.points import rule_words
from calibrant.serving.console.pages.predictions.reasons import UNJUDGED, format_distinct
from calibrant.serving.console.pages.predictions.wording import make_visible
from calibrant.serving.console.pages.try_it.rules import (
    RowDecision,
    RuleComparison,
    ScopeCheck,
    check_scope,
    compare_rules,
)
from calibrant.serving.scoring import ScoredRow

_SCOPE_SCORES = {
    "energy": "energy score",
    "entropy": "entropy",
    "max_logit": "negative largest logit",
    "unreadable": "unreadable input (1: yes)",
}

_MIN_EDGE, _MAX_ODDS = 1e-9, 1e6
"""Closer to 0 or 1 than this, scores are shown as log-odds, clipped to this range."""


def outcome_words(outcome: RowDecision) -> str:
    """Describe a decision, to follow "the bundle would"."""
    if outcome.decision == "act":
        action = f" ({make_visible(outcome.action)})" if outcome.action else ""
        return f"act on {quote_name(make_visible(str(outcome.acted_as)))}{action}"
    return {"clear": "clear it"}.get(outcome.decision, "leave it to a person")


def headline_words(row: ScoredRow, comparisons: Sequence[RuleComparison]) -> str:
    """Describe the decision."""
    if row.decision is None:
        return "No decision: the bundle has no operating point and returns probabilities only."
    if row.decision == "out_of_scope":
        return "Left to a person: it is out of scope."
    if row.decision == "act":
        action = f": {make_visible(row.action)}" if row.action else ""
        return sentence(f"act on {quote_name(make_visible(str(row.acted_as)))}{action}")
    if row.decision == "clear":
        of = next(each.rule.point.of for each in comparisons if each.decided)
        return f"Cleared of {quote_name(make_visible(str(of)))}."
    return "Left to a person."


def score_description(comparison: RuleComparison, *, calibrator: bool) -> str:
    """Describe what the decision score of a rule is."""
    of = comparison.rule.point.of
    what = "probability" if comparison.resolved_by_probs else "log-odds"
    about = "of the predicted class" if of is None else f"of {quote_name(make_visible(str(of)))}"
    if comparison.calibrated:
        return f"the calibrated {what} {about}"
    return f"the model’s own {what} {about}" if calibrator else f"the {what} {about}"


def score_pair(comparison: RuleComparison) -> tuple[str, str]:
    """Format the row's score and the threshold so that they can be distinguished."""
    point = comparison.rule.point
    if comparison.resolved_by_probs:
        return format_distinct(comparison.prob, point.threshold, above=comparison.reached)
    return format_distinct(comparison.odds, point.logit, above=comparison.reached)


def distance_words(comparison: RuleComparison) -> str:
    """Describe the distance from the row's score to the threshold."""
    point = comparison.rule.point
    if comparison.resolved_by_probs:
        distance, unit = comparison.prob - point.threshold, ""
    else:
        distance, unit = comparison.odds - point.logit, " log-odds"
    if distance == 0:
        return "exactly on it"
    return f"{number(abs(distance))}{unit} {'above' if comparison.reached else 'below'}"


def why_words(
    row: ScoredRow, comparisons: Sequence[RuleComparison], *, calibrator: bool
) -> list[str]:
    """Explain the decision; empty if the scope explains it."""
    if row.decision in (None, "out_of_scope"):
        return []
    deciding = next((each for each in comparisons if each.decided), None)
    if deciding is None:
        if len(comparisons) == 1:
            reason = f"{_comparison(comparisons[0], calibrator)}, so it is left to a person."
            return [reason, *_place(comparisons[0])]
        return ["No rule would act on it, so it is left to a person."]
    comparison = f"{_comparison(deciding, calibrator)} of operating point {deciding.position}"
    if deciding.rule.clears:
        reason = f"{comparison}, and no rule would act on it, so it is cleared."
        return [reason, *_place(deciding)]
    acting = sum(each.reached and not each.rule.clears for each in comparisons)
    several = "Several rules would act on it: that of the most probable class decides."
    reason = f"{comparison}, so it is acted on."
    return [reason, *_place(deciding), *([several] if acting > 1 else [])]


def turning_point_words(comparison: RuleComparison) -> str:
    """Describe the threshold at which the decision changes."""
    if comparison.at_most.decision == "out_of_scope":
        return "No threshold changes the decision: out-of-scope rows are always left to a person."
    if not comparison.turns:
        done = outcome_words(comparison.above)
        return f"No threshold of this rule changes the decision: the bundle would {done} anyway."
    if comparison.reached:
        other, where = comparison.above, f"above {_round_score(comparison, math.ceil)}"
    else:
        other, where = comparison.at_most, f"of {_round_score(comparison, math.floor)} or less"
    return f"With a threshold {where}, the bundle would {outcome_words(other)} instead."


def scope_words(scope: ScopeCheck) -> str:
    """Describe the out-of-scope check of a row."""
    if not scope.judged:
        return UNJUDGED
    name = _SCOPE_SCORES.get(scope.name, scope.name)
    score, limit = format_distinct(scope.score, scope.limit, above=scope.outside)
    if scope.outside:
        return (
            f"It is unlike the rows the rule was fitted on: its {name} is {score}, above the limit "
            f"{limit}. Out-of-scope rows are left to a person, whatever the operating points say."
        )
    return f"It is in scope: its {name} is {score}, not above the limit {limit}."


def redacted_text(served: Served, text: str) -> str | None:
    """Return the text the model reads if it is redacted first, else None."""
    scorer = served.bundle.scorer
    if scorer is None or not scorer.redact:
        return None
    redacted = redact(text)
    return None if redacted == text else redacted


def _round_score(comparison: RuleComparison, to: Callable[[float], int]) -> str:
    """Round the row's score with `to`, so that statements about thresholds beyond it hold."""
    edge = min(comparison.prob, 1.0 - comparison.prob)
    if not comparison.resolved_by_probs or edge < _MIN_EDGE:
        whole = max(-_MAX_ODDS, min(_MAX_ODDS, comparison.odds))
        return f"{to(whole * 100) / 100:.2f} log-odds"
    digits = max(4, 2 - math.floor(math.log10(edge)))
    return f"{to(comparison.prob * 10**digits) / 10**digits:.{digits}f}"


def _comparison(comparison: RuleComparison, calibrator: bool) -> str:
    words = score_description(comparison, calibrator=calibrator)
    score, threshold = score_pair(comparison)
    where = "which reaches the threshold" if comparison.reached else "which is below the threshold"
    return f"Its decision score, {words}, is {score}, {where} {threshold}"


def _place(comparison: RuleComparison) -> list[str]:
    return [comparison.place] if comparison.place else []


_MAX_CLASSES = 10  # Classes whose probability is shown at once; the rest can be expanded
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
        "place": comparison.place,
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
