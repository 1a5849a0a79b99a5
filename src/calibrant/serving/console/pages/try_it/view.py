"""What the Try it page shows of a scored row, as plain values."""

from __future__ import annotations

import math
from typing import Any

from calibrant.client.messages import Input
from calibrant.formatting import percent, printable, sentence
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.model.points import rule_words
from calibrant.serving.console.pages.predictions.wording import visible
from calibrant.serving.console.pages.try_it.rules import Reading, readings, scope_of
from calibrant.serving.console.pages.try_it.wording import (
    compared_words,
    distance_words,
    headline_words,
    outcome_words,
    read_words,
    scope_words,
    score_pair,
    turning_words,
    why_words,
)
from calibrant.serving.scoring import ScoredRow

__all__ = ["result_data"]

_SHOWN = 10
"""Classes whose probability is shown at once; the rest can be opened."""

_WIDEST, _MARGIN, _FARTHEST = 4.6, 1.5, 60.0
"""Log-odds that a slider spans to each side: 1 to 99 %, a margin beyond both marks, and no more."""


def result_data(
    served: Served, given: Input, row: ScoredRow, point: int | None = None
) -> dict[str, Any]:
    """Gather the answer to a row: class, probabilities, decision, why, and what would turn it."""
    bundle, calibrator = served.bundle, served.bundle.calibration is not None
    found = readings(bundle, row, point) if bundle.points else []
    scope = scope_of(bundle, row)
    outside = row.out_of_scope is True
    first, rest = _probabilities(served, row)
    return {
        "headline": headline_words(row, found),
        "state": "good" if row.decision in ("act", "clear") else "unknown",
        "label": visible(row.label),
        "top": percent(max(row.probs)),
        "calibrated": calibrator,
        "first": first,
        "rest": rest,
        "why": why_words(row, found, calibrator=calibrator),
        "scope": None if scope is None else scope_words(scope),
        "outside": outside,
        "rules": [_rule(each, calibrator, outside) for each in _ordered(found)],
        "read": None if given.text is None else read_words(served, given.text),
        "point": point,
    }


def _probabilities(
    served: Served, row: ScoredRow
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the most probable classes, and all others."""
    order = sorted(range(len(row.probs)), key=lambda i: -row.probs[i])
    made = [
        {
            "name": visible(served.classes[i]),
            "share": percent(row.probs[i]),
            "width": f"{100 * row.probs[i]:.2f}",
        }
        for i in order
    ]
    return made[:_SHOWN], made[_SHOWN:]


def _ordered(found: list[Reading]) -> list[Reading]:
    """Put the rule that decides first, then those that could change the decision, nearest first."""

    def rank(each: Reading) -> tuple[bool, bool, float]:
        return not each.decided, not each.turns, abs(each.prob - each.rule.point.threshold)

    return sorted(found, key=rank)


def _rule(reading: Reading, calibrator: bool, outside: bool) -> dict[str, Any]:
    score, threshold = score_pair(reading)
    point = reading.rule.point
    says = "for it" if reading.reached != reading.rule.clears else "not for it"
    return {
        "place": reading.place,
        "does": sentence(rule_words(reading.rule, calibrated=reading.calibrated)),
        "name": printable(_name(reading)),
        "compared": compared_words(reading, calibrator=calibrator),
        "score": score,
        "threshold": threshold,
        "distance": distance_words(reading),
        "says": "not asked, as the row is out of scope" if outside else says,
        "decided": reading.decided,
        "promise": printable(point.guarantee or f"No promise: {point.why}."),
        "turns": reading.turns,
        "turning": turning_words(reading),
        "slider": _slider(reading),
    }


def _name(reading: Reading) -> str:
    of, clears = reading.rule.point.of, reading.rule.clears
    if of is None:
        return "accept predictions of any class"
    return f"{'clear of' if clears else 'act on'} {visible(str(of))}"


def _slider(reading: Reading) -> dict[str, Any]:
    """Return what the script needs: both marks as log-odds, and what happens on each side."""
    point = reading.rule.point
    threshold = point.logit if point.on == "logits" else _odds(point.threshold)
    marks = [_within(reading.odds), _within(threshold)]
    reach = min(max(_WIDEST, *(abs(mark) + _MARGIN for mark in marks)), _FARTHEST)
    return {
        "score": _within(reading.odds),
        "threshold": _within(threshold),
        "number": f"{point.threshold:.6g}",
        "reach": round(reach, 4),
        "reached": reading.reached,
        "at_most": outcome_words(reading.at_most),
        "above": outcome_words(reading.above),
    }


def _odds(prob: float) -> float:
    if prob <= 0 or prob >= 1:
        return -math.inf if prob <= 0 else math.inf
    return math.log(prob) - math.log1p(-prob)


def _within(odds: float) -> float:
    """Return log-odds as JSON can hold them."""
    return max(-_FARTHEST * 10, min(_FARTHEST * 10, odds))
