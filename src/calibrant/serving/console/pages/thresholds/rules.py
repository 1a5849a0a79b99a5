"""Thresholds of a bundle that can be changed, and the points after a change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.bundle import Bundle, BundlePoint
from calibrant.bundle.points import DecidesOn, Rule
from calibrant.bundle.scores import ModelScores
from calibrant.errors import InputError
from calibrant.reports.threshold.wording import class_words
from calibrant.serving.console.pages.thresholds.targets import joint_confidence_after
from calibrant.thresholds import Band, OperatingPoint, OperatingPoints

_DEFAULT_CONFIDENCE = 0.95
_ANY = "any"


@dataclass(frozen=True)
class ThresholdChoice:
    """A threshold that a bundle has or could have."""

    position: int | None  # position of the class; None if predictions of any class are accepted
    of: Any  # class name, as in the bundle
    clears: bool = False  # whether rows below the threshold are cleared (the lower end of a band)

    @property
    def code(self) -> str:
        """Short code for URLs and forms."""
        return _ANY if self.position is None else f"{self.position}{'c' if self.clears else ''}"

    @property
    def name(self) -> str | None:
        """The class as text."""
        return None if self.of is None else str(self.of)

    @property
    def title(self) -> str:
        """Title in lists."""
        if self.of is None:
            return "predictions of any class"
        return f"{self.of} (cleared)" if self.clears else str(self.of)


@dataclass(frozen=True)
class CurrentThreshold:
    """A threshold that currently decides."""

    entry: int  # position of its operating point in the bundle
    rule: Rule
    decides_on: DecidesOn  # scores that it compares

    @property
    def promised(self) -> bool:
        """Whether it carries a promise."""
        return self.rule.point.guarantee is not None


def list_choices(bundle: Bundle) -> list[ThresholdChoice]:
    """Return every threshold that the bundle has or could have, deciding ones first."""
    rules = [rule for each in bundle.points for rule in each.rules]
    cleared = {str(rule.point.of) for rule in rules if rule.clears}
    choices = []
    for position, of in enumerate(bundle.classes):
        choices.append(ThresholdChoice(position, of))
        if str(of) in cleared:
            choices.append(ThresholdChoice(position, of, clears=True))
    if not rules or any(rule.point.of is None for rule in rules):
        choices.append(ThresholdChoice(None, None))
    return sorted(choices, key=lambda each: _rank(bundle, each))


def _rank(bundle: Bundle, choice: ThresholdChoice) -> tuple[int, bool, int]:
    """Sort by the deciding point, then by class; for binary bundles the second class is first."""
    current = find_current(bundle, choice)
    entry = len(bundle.points) if current is None else current.entry
    position = choice.position or 0
    usual = -position if len(bundle.classes) == 2 and current is None else position
    return entry, choice.position is None, usual


def find_current(bundle: Bundle, choice: ThresholdChoice) -> CurrentThreshold | None:
    """Return the threshold that currently decides; alternatives do not."""
    for entry, each in enumerate(bundle.points):
        if bundle.is_alternative(entry):
            continue
        for rule in each.rules:
            if _name(rule.point.of) == choice.name and rule.clears == choice.clears:
                return CurrentThreshold(entry, rule, each.decides_on)
    return None


def count_promises(points: Iterable[BundlePoint]) -> int:
    """Count the thresholds that carry a promise."""
    return sum(rule.point.guarantee is not None for each in points for rule in each.rules)


def certification_confidence(bundle: Bundle) -> float:
    """Return the confidence at which promises of a bundle are certified: the first one's."""
    rules = (rule.point for each in bundle.points for rule in each.rules)
    return next((p.confidence for p in rules if p.guarantee and p.confidence), _DEFAULT_CONFIDENCE)


def count_candidates(bundle: Bundle) -> int:
    """Return the number of models among which these rows' labels chose the scores."""
    rules = (rule.point for each in bundle.points for rule in each.rules)
    return max((point.candidates for point in rules), default=1)


def joint_confidence(bundle: Bundle) -> float | None:
    """Return the joint confidence of all promises of a bundle, or None without promises."""
    if count_promises(bundle.points) == 0:
        return None
    recorded = bundle.provenance.get("confidence_together")
    if isinstance(recorded, int | float) and not isinstance(recorded, bool):
        return float(recorded)
    risks = (1.0 - each.confidence for each in bundle.points if each.confidence is not None)
    return max(0.0, round(1.0 - sum(risks), 12))


def replace_threshold(
    bundle: Bundle,
    choice: ThresholdChoice,
    point: OperatingPoint,
    decides_on: DecidesOn,
) -> list[BundlePoint]:
    """Return a bundle's points with one threshold changed; the new one decides.

    Requests may name a point by its position, so positions are kept where possible; see
    `describe_positions`.
    """
    points, new = list(bundle.points), BundlePoint(point, decides_on)
    current = find_current(bundle, choice)
    position = _target_position(bundle, choice, decides_on)
    if current is None:
        points.insert(position, new)
        return points
    old = points[current.entry]
    if isinstance(old.result, Band):
        new = BundlePoint(
            _replace_in_band(old.result, point, choice.clears, old.decides_on, decides_on),
            decides_on,
        )
    elif isinstance(old.result, OperatingPoints) and len(old.rules) > 1:
        if position != current.entry:
            points[current.entry] = _drop_class(old, old.result, choice.name, bundle)
            points.insert(position, new)
            return points
        new = _replace_class(old, old.result, choice.name, point, bundle)
    points[current.entry] = new
    return points


def describe_positions(bundle: Bundle, choice: ThresholdChoice, decides_on: DecidesOn) -> str:
    """Describe what a change means for requests that name a point by its position."""
    current, last = find_current(bundle, choice), len(bundle.points)
    position, effects = _target_position(bundle, choice, decides_on), []
    if position == last if current is None else position == current.entry:
        return ""
    if current is not None:
        effects.append(f"point {current.entry} no longer acts on {class_words(choice.of)}")
    effects.append(f"the new threshold is point {position}")
    if position < last:
        further = ", and so on" if position < last - 1 else ""
        effects.append(f"the former point {position} is point {position + 1}{further}")
    return "; ".join(effects)


def _target_position(bundle: Bundle, choice: ThresholdChoice, decides_on: DecidesOn) -> int:
    """Return the position of a changed threshold: that of the old one, or a new one.

    A new one is appended, but comes before every other point that acts on its class; otherwise it
    would be an alternative and decide nothing.
    """
    current = find_current(bundle, choice)
    if current is not None:
        old = bundle.points[current.entry]
        same_scores = old.decides_on == decides_on and _names(old.classes) == _names(bundle.classes)
        if same_scores or len(old.rules) == 1 or isinstance(old.result, Band):
            return current.entry
    first = 0 if current is None else current.entry + 1
    acting = (i for i, each in enumerate(bundle.points) if choice.name in each.acts_on)
    return next((i for i in acting if i >= first), len(bundle.points))


def _replace_in_band(
    old: Band, point: OperatingPoint, clears: bool, old_decides_on: DecidesOn, decides_on: DecidesOn
) -> Band:
    """Return a band with one of its two thresholds changed."""
    if old_decides_on != decides_on:
        raise InputError(
            "the band uses calibrated scores, but promises are certified on the model's own: "
            "choose both of its thresholds again with calibrant threshold, and pack them."
        )
    upper, lower = (old.upper, point) if clears else (point, old.lower)
    if upper.logit < lower.logit:
        raise InputError(
            "rows to act on and rows to clear would overlap: choose a threshold "
            + (f"of at most {upper.threshold:.6g}." if clears else f"from {lower.threshold:.6g}.")
        )
    shares = [each.rates.get("coverage") for each in (upper, lower)]
    measured = [each.value for each in shares if each is not None and each.value is not None]
    automated = 1 - (measured[1] - measured[0]) if len(measured) == 2 else old.automated
    has_promise = upper.guarantee is not None or lower.guarantee is not None
    confidence = (old.confidence or point.confidence) if has_promise else None
    return Band(upper, lower, confidence, automated)


def _replace_class(
    old: BundlePoint,
    whole: OperatingPoints,
    name: str | None,
    point: OperatingPoint,
    bundle: Bundle,
) -> BundlePoint:
    """Return a point of several classes with the threshold of one class changed."""
    before = {_name(of): each for of, each in whole.points.items()}[name]
    points = {of: point if _name(of) == name else each for of, each in whole.points.items()}
    added = before.guarantee is None and point.guarantee is not None
    promises = count_promises(bundle.points) + added
    confidence = whole.confidence
    if added and point.confidence is not None:
        confidence = joint_confidence_after(
            confidence, point.confidence, promises=promises, added=True
        )
    if all(each.guarantee is None for each in points.values()):
        confidence = None
    changed = replace(old, result=OperatingPoints(points, whole.unreachable, confidence))
    return _recount(changed, bundle)


def _drop_class(
    old: BundlePoint, whole: OperatingPoints, name: str | None, bundle: Bundle
) -> BundlePoint:
    """Return a point of several classes without one of them."""
    points = {of: each for of, each in whole.points.items() if _name(of) != name}
    changed = replace(old, result=OperatingPoints(points, whole.unreachable, whole.confidence))
    return _recount(changed, bundle)


def _recount(point: BundlePoint, bundle: Bundle) -> BundlePoint:
    """Recount the labelled rows that more than one class flags."""
    assert isinstance(point.result, OperatingPoints)
    return replace(point, result=replace(point.result, flagged_twice=_flagged_twice(point, bundle)))


def _flagged_twice(point: BundlePoint, bundle: Bundle) -> int:
    """Count the labelled rows that more than one class flags."""
    if bundle.calib is None:
        return 0
    log_probs = None
    if point.decides_on == "calibrated" and bundle.calibration is not None:
        log_probs = bundle.calibration.log_probs(bundle.calib.logits)
    scores = ModelScores("logits", bundle.calib.logits)
    outcomes = point.apply_rules(scores, log_probs, bundle.classes)
    return int((np.sum([outcome.acts for outcome in outcomes], axis=0) > 1).sum())


def _names(classes: Iterable[Any]) -> list[str]:
    return [str(each) for each in classes]


def _name(of: Any) -> str | None:
    return None if of is None else str(of)
