"""Why a prediction was decided as it was: the rules that had a say, and what each compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.bundle import BundlePoint
from calibrant.bundle.points import Rule
from calibrant.bundle.scores import class_positions
from calibrant.convert import probs_from_logits
from calibrant.errors import CalibrantError
from calibrant.ood import OodRule
from calibrant.serving.console.pages.predictions.wording import visible
from calibrant.store import BundleRecord, Prediction
from calibrant.thresholds import Band
from calibrant.thresholds.scores import row_scores

__all__ = ["Why", "WhyRule", "apart", "why"]


@dataclass(frozen=True)
class WhyRule:
    """What one rule compared.

    Parameters
    ----------
    point : position of its operating point
    clears : whether it clears rows below its threshold, instead of acting on those above
    of : the class it is about; None for any
    promise : what it promises, or why it promises nothing
    compared : which score it looks at
    score, threshold : that score and what it was compared with, as text
    holds : whether the rule was for acting (or clearing)
    decided : whether it is the one that decided
    """

    point: int
    clears: bool
    of: str | None
    promise: str
    compared: str
    score: str
    threshold: str
    holds: bool
    decided: bool

    @property
    def does(self) -> str:
        """What the rule is for."""
        if self.of is None:
            return "accept predictions of any class"
        return f"{'clear of' if self.clears else 'act on'} {self.of}"


@dataclass(frozen=True)
class Why:
    """The reasons of a decision.

    Parameters
    ----------
    sentences : in words
    rules : that had a say, none where nothing can be said about them
    """

    sentences: tuple[str, ...]
    rules: tuple[WhyRule, ...] = ()


def why(found: Prediction, record: BundleRecord) -> Why:
    """Explain a prediction by the bundle that made it, which may not serve any more."""
    try:
        points = [BundlePoint.from_dict(each) for each in record.manifest["operating_points"]]
        outside = _outside(found, record) if found.out_of_scope else ()
        rules = _rules(found, record, points)
    except (CalibrantError, KeyError, TypeError, ValueError, IndexError):
        return Why(
            ("What its bundle said about its operating points cannot be read by this version of "
             "Calibrant, so that the reasons cannot be told.",)
        )  # fmt: skip
    if not points:
        none = "Its bundle has no operating point: it gives probabilities and decides nothing."
        return Why((*outside, none))
    asked: tuple[str, ...] = ()
    if found.asked_point is not None:
        asked = (f"The request asked for operating point {found.asked_point}.",)
    return Why((*outside, *_told(found, rules), *asked), rules)


def apart(score: float, threshold: float, *, above: bool) -> tuple[str, str]:
    """Write two numbers with as many digits as it takes to see which is greater.

    Examples
    --------
    >>> apart(0.912345, 0.75, above=True), apart(0.75000012, 0.75, above=True)
    (('0.9123', '0.75'), ('0.7500001', '0.75'))
    >>> apart(0.7499999999999999, 0.75, above=True)
    ('0.75', '0.75')
    """
    if (score >= threshold) != above:
        return f"{threshold:.4g}", f"{threshold:.4g}"
    for digits in range(4, 17):
        said = f"{score:.{digits}g}", f"{threshold:.{digits}g}"
        if score == threshold or said[0] != said[1]:
            return said
    return f"{score:.17g}", f"{threshold:.17g}"


def _rules(
    found: Prediction, record: BundleRecord, points: Sequence[BundlePoint]
) -> tuple[WhyRule, ...]:
    """Return what every rule that had a say compared."""
    taken: set[str | None] = set()
    made = []
    for i, each in enumerate(points):
        first = not (taken & each.acts_on)
        taken |= each.acts_on
        if first if found.asked_point is None else i == found.asked_point:
            made += [_rule(found, record, i, each, rule) for rule in each.rules]
    return tuple(made)


def _rule(
    found: Prediction, record: BundleRecord, place: int, each: BundlePoint, rule: Rule
) -> WhyRule:
    point = rule.point
    order = class_positions(each.classes, record.classes, owners=("the point", "the bundle"))
    scores = _compared(found, each, rule, order)
    reached = scores.reached
    decided = found.operating_point == place and _is_of(found, rule)
    if decided:  # as it was found then, whatever the last digits of probabilities say now
        reached = not rule.clears
    score, threshold = apart(scores.score, scores.threshold, above=reached)
    of = None if point.of is None else visible(str(point.of))
    promises = each.promises if isinstance(each.result, Band) else None
    promise = promises[0] if promises else point.guarantee or f"No promise: {point.why}."
    calibrated = record.manifest.get("calibrator") is not None
    return WhyRule(
        point=place,
        clears=rule.clears,
        of=of,
        promise=visible(promise),
        compared=_score_words(each, of, scores.odds, calibrated),
        score=score,
        threshold=threshold,
        holds=reached != rule.clears and not found.out_of_scope,
        decided=decided,
    )


def _is_of(found: Prediction, rule: Rule) -> bool:
    """Whether a rule of the point that decided is the one that did."""
    if found.decision == "clear":
        return rule.clears
    of = rule.point.of
    return found.decision == "act" and not rule.clears and (of is None or str(of) == found.acted_as)


@dataclass(frozen=True)
class _Compared:
    score: float
    threshold: float
    reached: bool
    odds: bool


def _compared(found: Prediction, each: BundlePoint, rule: Rule, order: Sequence[int]) -> _Compared:
    """Return the one number that a rule looks at; as log-odds where probabilities cannot tell."""
    point = rule.point
    told = {"of": point.of, "classes": point.classes}
    logits = np.array([found.logits], dtype=np.float64)[:, list(order)]
    if each.decides_on == "calibrated":
        probs = np.array([found.probs], dtype=np.float64)[:, list(order)]
        prob = float(row_scores(probs, on="probs", **told)[0])
        odds = math.inf if prob >= 1 else -math.inf if prob <= 0 else math.log(prob / (1 - prob))
    else:
        prob = float(row_scores(probs_from_logits(logits), on="probs", **told)[0])
        odds = float(row_scores(logits, on="logits", **told)[0])
    by_odds = point.on == "logits" and each.decides_on == "raw"
    reached = odds >= point.logit if by_odds else prob >= point.threshold
    if point.told_by_probs:
        return _Compared(prob, point.threshold, reached, False)
    return _Compared(odds, point.logit, odds >= point.logit, True)


def _score_words(each: BundlePoint, of: str | None, odds: bool, calibrated: bool) -> str:
    what = "log-odds" if odds else "probability"
    about = "of the predicted class" if of is None else f"of {of}"
    if each.decides_on == "calibrated":
        return f"calibrated {what} {about}"
    if calibrated:
        return f"the model’s own, uncalibrated {what} {about}"
    return f"{what} {about}"


def _told(found: Prediction, rules: Sequence[WhyRule]) -> tuple[str, ...]:
    if found.decision == "out_of_scope":
        return ()
    deciding = next((rule for rule in rules if rule.decided), None)
    if deciding is None:
        if len(rules) == 1:
            return (f"{_comparison(rules[0])}, so it was left to a person.",)
        return ("No rule is for acting on it, so it was left to a person.",)
    said = f"{_comparison(deciding)} of operating point {deciding.point}"
    if deciding.clears:
        return (f"{said}, and no rule is for acting on it, so it was cleared.",)
    told = [f"{said}, so it was acted on."]
    if sum(rule.holds and not rule.clears for rule in rules) > 1:
        told.append("Several rules are for acting on it: that of the most probable class decided.")
    return tuple(told)


def _comparison(rule: WhyRule) -> str:
    start = rule.compared[:1].upper() + rule.compared[1:]
    reached = rule.holds != rule.clears
    where = "at or above the threshold" if reached else "below the threshold"
    verb = "were" if "log-odds" in rule.compared else "was"
    return f"{start} {verb} {rule.score}, {where} {rule.threshold}"


def _outside(found: Prediction, record: BundleRecord) -> tuple[str, ...]:
    """Say why a row is out of scope."""
    rule = OodRule.from_dict(record.manifest["ood"])
    logits = np.array([found.logits], dtype=np.float64)
    if rule.cannot_judge(logits)[0]:
        return (UNJUDGED,)
    limit = float(rule.limits(logits)[0])
    score, threshold = apart(float(rule.scores(logits)[0]), limit, above=True)
    share = f"{rule.quantile * 100:.6g}"
    return (
        f"It is unlike the rows that the model knows: its {_OOD_WORDS.get(rule.score, rule.score)} "
        f"is {score}, above {threshold}, which {share} % of {rule.n:,} known rows stay below. "
        "Such a row is left to a person, whatever the operating points say.",
    )


UNJUDGED = (
    "The model cannot judge it: it has the same logit for every class, as for a row with a number "
    "far from all rows that the model was trained on. Such a row is left to a person, whatever the "
    "operating points say."
)
_OOD_WORDS: Mapping[str, Any] = {
    "energy": "energy score",
    "entropy": "entropy",
    "max_logit": "largest logit, taken negative,",
}
