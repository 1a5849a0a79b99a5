"""Explanation of a decision: the rules involved, and what each compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.bundle import BundlePoint
from calibrant.bundle.calibration import BundleCalibration
from calibrant.bundle.decision_rules import DecisionRule, decision_rules
from calibrant.bundle.points import Rule
from calibrant.bundle.scores import class_positions
from calibrant.convert import probs_from_logits
from calibrant.errors import CalibrantError
from calibrant.ood import OodRule
from calibrant.reports.threshold.wording import threshold_words
from calibrant.serving.console.pages.predictions.wording import make_visible
from calibrant.store import BundleRecord, Prediction
from calibrant.thresholds import Band
from calibrant.thresholds.scores import row_scores


@dataclass(frozen=True)
class RuleExplanation:
    """What one rule compared."""

    point: int  # position of its operating point
    clears: bool  # whether it clears rows below its threshold, instead of acting on those above
    of: str | None
    promise: str  # its promise, or why there is none
    compared: str  # description of the score
    score: str  # score and threshold, as text
    threshold: str
    holds: bool  # whether the rule's condition was met
    decided: bool  # whether it made the decision
    calibrated: str = ""  # the threshold among calibrated probabilities, if another number
    same_scale: bool = True  # whether decision scores are the bundle's probabilities

    @property
    def does(self) -> str:
        """What the rule does."""
        if self.of is None:
            return "accept predictions of any class"
        return f"{'clear of' if self.clears else 'act on'} {self.of}"


@dataclass(frozen=True)
class DecisionExplanation:
    """Reasons of a decision."""

    sentences: tuple[str, ...]  # in words
    rules: tuple[RuleExplanation, ...] = ()  # rules involved; empty if they are unknown


def explain(prediction: Prediction, record: BundleRecord) -> DecisionExplanation:
    """Explain a prediction by the bundle that made it, which may no longer be served."""
    try:
        points = [BundlePoint.from_dict(each) for each in record.manifest["operating_points"]]
        scope = _out_of_scope_reason(prediction, record) if prediction.out_of_scope else ()
        rules = _explain_rules(prediction, record, points)
    except (CalibrantError, KeyError, TypeError, ValueError, IndexError):
        return DecisionExplanation(
            ("This version of Calibrant cannot read the operating points of the prediction's "
             "bundle, so the reasons are unknown.",)
        )  # fmt: skip
    if not points:
        no_point = "Its bundle has no operating point: it returns probabilities and no decision."
        return DecisionExplanation((*scope, no_point))
    requested: tuple[str, ...] = ()
    if prediction.asked_point is not None:
        requested = (f"The request named operating point {prediction.asked_point}.",)
    return DecisionExplanation((*scope, *_reasons(prediction, rules), *requested), rules)


def format_distinct(score: float, threshold: float, *, above: bool) -> tuple[str, str]:
    """Format two numbers with enough digits to show which is greater."""
    if (score >= threshold) != above:
        return f"{threshold:.4g}", f"{threshold:.4g}"
    for digits in range(4, 17):
        pair = f"{score:.{digits}g}", f"{threshold:.{digits}g}"
        if score == threshold or pair[0] != pair[1]:
            return pair
    return f"{score:.17g}", f"{threshold:.17g}"


def _explain_rules(
    prediction: Prediction, record: BundleRecord, points: Sequence[BundlePoint]
) -> tuple[RuleExplanation, ...]:
    """Return the comparisons of every rule involved."""
    return tuple(
        _explain_rule(prediction, record, points[rule.position], rule)
        for rule in _rules_of(record, points)
        if (
            not rule.alternative
            if prediction.asked_point is None
            else rule.position == prediction.asked_point
        )
    )


def _rules_of(record: BundleRecord, points: Sequence[BundlePoint]) -> tuple[DecisionRule, ...]:
    """Return the rules of a recorded bundle; without places if its calibrator is unreadable."""
    acted_on: set[str | None] = set()
    alternatives = []
    for point in points:
        alternatives.append(bool(acted_on & point.acts_on))
        acted_on |= point.acts_on
    calibration = None
    with suppress(CalibrantError):
        if record.manifest.get("calibrator") is not None:
            calibration = BundleCalibration.from_dict(record.manifest["calibrator"])
    return decision_rules(points, calibration, record.classes, alternatives)


def _explain_rule(
    prediction: Prediction,
    record: BundleRecord,
    bundle_point: BundlePoint,
    decision_rule: DecisionRule,
) -> RuleExplanation:
    rule, position = decision_rule.rule, decision_rule.position
    point = rule.point
    order = class_positions(
        bundle_point.classes, record.classes, owners=("the point", "the bundle")
    )
    comparison = _compare(prediction, bundle_point, rule, order)
    reached = comparison.reached
    decided = prediction.operating_point == position and _is_deciding(prediction, rule)
    if decided:  # as decided then, even if the last digits of probabilities differ now
        reached = not rule.clears
    score, threshold = format_distinct(comparison.score, comparison.threshold, above=reached)
    of = None if point.of is None else make_visible(str(point.of))
    promises = bundle_point.promises if isinstance(bundle_point.result, Band) else None
    promise = promises[0] if promises else point.guarantee or f"No promise: {point.why}."
    calibrated = record.manifest.get("calibrator") is not None
    moved = decision_rule.moved
    return RuleExplanation(
        point=position,
        clears=rule.clears,
        of=of,
        promise=make_visible(promise),
        compared=_score_words(bundle_point, of, comparison.odds, calibrated),
        score=score,
        threshold=threshold,
        holds=reached != rule.clears and not prediction.out_of_scope,
        decided=decided,
        calibrated="" if moved is None else threshold_words(moved.prob, moved.logit),
        same_scale=decision_rule.same_scale,
    )


def _is_deciding(prediction: Prediction, rule: Rule) -> bool:
    """Whether a rule of the deciding point made the decision."""
    if prediction.decision == "clear":
        return rule.clears
    of = rule.point.of
    return (
        prediction.decision == "act"
        and not rule.clears
        and (of is None or str(of) == prediction.acted_as)
    )


@dataclass(frozen=True)
class _Comparison:
    score: float
    threshold: float
    reached: bool
    odds: bool


def _compare(
    prediction: Prediction, bundle_point: BundlePoint, rule: Rule, order: Sequence[int]
) -> _Comparison:
    """Return the score and threshold of a rule, as log-odds where probabilities saturate."""
    point = rule.point
    columns = {"of": point.of, "classes": point.classes}
    logits = np.array([prediction.logits], dtype=np.float64)[:, list(order)]
    if bundle_point.decides_on == "calibrated":
        probs = np.array([prediction.probs], dtype=np.float64)[:, list(order)]
        prob = float(row_scores(probs, on="probs", **columns)[0])
        odds = math.inf if prob >= 1 else -math.inf if prob <= 0 else math.log(prob / (1 - prob))
    else:
        prob = float(row_scores(probs_from_logits(logits), on="probs", **columns)[0])
        odds = float(row_scores(logits, on="logits", **columns)[0])
    by_odds = point.on == "logits" and bundle_point.decides_on == "raw"
    reached = odds >= point.logit if by_odds else prob >= point.threshold
    if point.works_on_probs:
        return _Comparison(prob, point.threshold, reached, False)
    return _Comparison(odds, point.logit, odds >= point.logit, True)


def _score_words(bundle_point: BundlePoint, of: str | None, odds: bool, calibrated: bool) -> str:
    what = "log-odds" if odds else "probability"
    about = "of the predicted class" if of is None else f"of {of}"
    if bundle_point.decides_on == "calibrated":
        return f"the calibrated {what} {about}"
    return f"the model’s own {what} {about}" if calibrated else f"the {what} {about}"


def _reasons(prediction: Prediction, rules: Sequence[RuleExplanation]) -> tuple[str, ...]:
    if prediction.decision == "out_of_scope":
        return ()
    deciding = next((rule for rule in rules if rule.decided), None)
    if deciding is None:
        if len(rules) == 1:
            reason = f"{_comparison(rules[0])}, so it was left to a person."
            return (reason, *_place(rules[0]))
        return ("No rule would act on it, so it was left to a person.",)
    comparison = f"{_comparison(deciding)} of operating point {deciding.point}"
    if deciding.clears:
        reason = f"{comparison}, and no rule would act on it, so it was cleared."
        return (reason, *_place(deciding))
    reasons = [f"{comparison}, so it was acted on.", *_place(deciding)]
    if sum(rule.holds and not rule.clears for rule in rules) > 1:
        reasons.append("Several rules would act on it: that of the most probable class decided.")
    return tuple(reasons)


def _comparison(rule: RuleExplanation) -> str:
    reached = rule.holds != rule.clears
    where = "at or above the threshold" if reached else "below the threshold"
    score = f"Its decision score, {rule.compared}, was {rule.score}"
    return f"{score}, {where} {rule.threshold}"


def _place(rule: RuleExplanation) -> tuple[str, ...]:
    """Say where the threshold lies among calibrated probabilities, if on another scale."""
    if not rule.calibrated:
        return ()
    words = f"A decision score of {rule.threshold} is a calibrated probability of {rule.calibrated}"
    return (f"{words}.",)


def _out_of_scope_reason(prediction: Prediction, record: BundleRecord) -> tuple[str, ...]:
    """Explain why a row is out of scope."""
    rule = OodRule.from_dict(record.manifest["ood"])
    logits = np.array([prediction.logits], dtype=np.float64)
    if rule.cannot_judge(logits)[0]:
        return (UNJUDGED,)
    limit = float(rule.limits(logits)[0])
    score, threshold = format_distinct(float(rule.scores(logits)[0]), limit, above=True)
    share = f"{rule.quantile * 100:.6g}"
    return (
        "It is unlike the rows the rule was fitted on: its "
        f"{_OOD_WORDS.get(rule.score, rule.score)} is {score}, above the limit {threshold}, which "
        f"{share} % of those {rule.n:,} rows do not exceed. Such rows are left to a person, "
        "whatever the operating points say.",
    )


UNJUDGED = (
    "The model cannot judge it: its logits are the same for every class, as for a number far "
    "outside the training range. Such rows are left to a person, whatever the operating points say."
)
_OOD_WORDS: Mapping[str, Any] = {
    "energy": "energy score",
    "entropy": "entropy",
    "max_logit": "negative largest logit",
    "unreadable": "unreadable input (1: yes)",
}
