"""The thresholds of a bundle that can be looked at and changed, and the points after a change."""

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
from calibrant.serving.console.pages.thresholds.targets import together_after
from calibrant.thresholds import Band, OperatingPoint, OperatingPoints

__all__ = [
    "Choice",
    "Current",
    "candidates_of",
    "choices_of",
    "confidence_of",
    "current_of",
    "points_after",
    "positions_told",
    "promised",
    "together_of",
]

_USUAL = 0.95
_ANY = "any"


@dataclass(frozen=True)
class Choice:
    """A threshold that a bundle has or could have.

    Parameters
    ----------
    place : position of the class; None where predictions of any class are accepted
    of : its name, as the bundle has it
    clears : whether rows below the threshold are cleared: the lower end of a band
    """

    place: int | None
    of: Any
    clears: bool = False

    @property
    def code(self) -> str:
        """A short text for addresses and forms."""
        return _ANY if self.place is None else f"{self.place}{'c' if self.clears else ''}"

    @property
    def name(self) -> str | None:
        """The class as text."""
        return None if self.of is None else str(self.of)

    @property
    def title(self) -> str:
        """What lists call it."""
        if self.of is None:
            return "predictions of any class"
        return f"{self.of} (cleared)" if self.clears else str(self.of)


@dataclass(frozen=True)
class Current:
    """The threshold that decides now.

    Parameters
    ----------
    entry : position of its operating point in the bundle
    rule : the threshold
    decides_on : the scores that it looks at
    """

    entry: int
    rule: Rule
    decides_on: DecidesOn

    @property
    def promised(self) -> bool:
        """Whether it carries a promise."""
        return self.rule.point.guarantee is not None


def choices_of(bundle: Bundle) -> list[Choice]:
    """Return every threshold that there is or could be: those that decide now come first."""
    rules = [rule for each in bundle.points for rule in each.rules]
    cleared = {str(rule.point.of) for rule in rules if rule.clears}
    found = []
    for place, of in enumerate(bundle.classes):
        found.append(Choice(place, of))
        if str(of) in cleared:
            found.append(Choice(place, of, clears=True))
    if not rules or any(rule.point.of is None for rule in rules):
        found.append(Choice(None, None))
    return sorted(found, key=lambda each: _rank(bundle, each))


def _rank(bundle: Bundle, choice: Choice) -> tuple[int, bool, int]:
    """Sort by the point that decides, then by the class; of two classes the second is usual."""
    current = current_of(bundle, choice)
    entry = len(bundle.points) if current is None else current.entry
    place = choice.place or 0
    usual = -place if len(bundle.classes) == 2 and current is None else place
    return entry, choice.place is None, usual


def current_of(bundle: Bundle, choice: Choice) -> Current | None:
    """Return the threshold that decides now; alternatives do not."""
    for entry, each in enumerate(bundle.points):
        if bundle.is_alternative(entry):
            continue
        for rule in each.rules:
            if _name(rule.point.of) == choice.name and rule.clears == choice.clears:
                return Current(entry, rule, each.decides_on)
    return None


def promised(points: Iterable[BundlePoint]) -> int:
    """Count the thresholds that carry a promise."""
    return sum(rule.point.guarantee is not None for each in points for rule in each.rules)


def confidence_of(bundle: Bundle) -> float:
    """Return the confidence with which promises of a bundle are certified, the first one's."""
    rules = (rule.point for each in bundle.points for rule in each.rules)
    return next((p.confidence for p in rules if p.guarantee and p.confidence), _USUAL)


def candidates_of(bundle: Bundle) -> int:
    """Return among how many models the scores were chosen by the labels of the same rows."""
    rules = (rule.point for each in bundle.points for rule in each.rules)
    return max((point.candidates for point in rules), default=1)


def together_of(bundle: Bundle) -> float | None:
    """Return the confidence of all promises of a bundle together; None where there is none."""
    if promised(bundle.points) == 0:
        return None
    told = bundle.provenance.get("confidence_together")
    if isinstance(told, int | float) and not isinstance(told, bool):
        return float(told)
    risks = (1.0 - each.confidence for each in bundle.points if each.confidence is not None)
    return max(0.0, round(1.0 - sum(risks), 12))


def points_after(
    bundle: Bundle,
    choice: Choice,
    point: OperatingPoint,
    decides_on: DecidesOn,
) -> list[BundlePoint]:
    """Return a bundle's points with one threshold changed; the new one decides.

    Requests may ask for a point by its position, so all keep theirs where that can be; see
    `positions_told`.
    """
    points, made = list(bundle.points), BundlePoint(point, decides_on)
    current = current_of(bundle, choice)
    place = _place_of(bundle, choice, decides_on)
    if current is None:
        points.insert(place, made)
        return points
    old = points[current.entry]
    if isinstance(old.result, Band):
        made = BundlePoint(
            _band_after(old.result, point, choice.clears, old.decides_on, decides_on), decides_on
        )
    elif isinstance(old.result, OperatingPoints) and len(old.rules) > 1:
        if place != current.entry:
            points[current.entry] = _without(old, old.result, choice.name, bundle)
            points.insert(place, made)
            return points
        made = _with(old, old.result, choice.name, point, bundle)
    points[current.entry] = made
    return points


def positions_told(bundle: Bundle, choice: Choice, decides_on: DecidesOn) -> str:
    """Say what a change means for requests that ask for a point by its position."""
    current, last = current_of(bundle, choice), len(bundle.points)
    place, found = _place_of(bundle, choice, decides_on), []
    if place == last if current is None else place == current.entry:
        return ""
    if current is not None:
        found.append(f"point {current.entry} does not act on {class_words(choice.of)} any more")
    found.append(f"the new threshold is point {place}")
    if place < last:
        further = ", and so on" if place < last - 1 else ""
        found.append(f"what was point {place} is point {place + 1}{further}")
    return "; ".join(found)


def _place_of(bundle: Bundle, choice: Choice, decides_on: DecidesOn) -> int:
    """Return the position where a new threshold goes: that of the old one, or a new one.

    A new one is the last, but comes before every other that acts on its class, or it would be an
    alternative to that one and decide nothing.
    """
    current = current_of(bundle, choice)
    if current is not None:
        old = bundle.points[current.entry]
        alike = old.decides_on == decides_on and _names(old.classes) == _names(bundle.classes)
        if alike or len(old.rules) == 1 or isinstance(old.result, Band):
            return current.entry
    first = 0 if current is None else current.entry + 1
    acting = (i for i, each in enumerate(bundle.points) if choice.name in each.acts_on)
    return next((i for i in acting if i >= first), len(bundle.points))


def _band_after(
    old: Band, point: OperatingPoint, clears: bool, was: DecidesOn, decides_on: DecidesOn
) -> Band:
    """Return a band with one of its two thresholds changed."""
    if was != decides_on:
        raise InputError(
            "the band looks at calibrated scores, and a promise is certified on the model's own: "
            "choose both of its thresholds anew with calibrant threshold, and pack them."
        )
    upper, lower = (old.upper, point) if clears else (point, old.lower)
    if upper.logit < lower.logit:
        raise InputError(
            "rows to act on and rows to clear would overlap: choose a threshold "
            + (f"of at most {upper.threshold:.6g}." if clears else f"from {lower.threshold:.6g}.")
        )
    shares = [each.rates.get("coverage") for each in (upper, lower)]
    measured = [each.value for each in shares if each is not None and each.value is not None]
    decided = 1 - (measured[1] - measured[0]) if len(measured) == 2 else old.automated
    promised = upper.guarantee is not None or lower.guarantee is not None
    confidence = (old.confidence or point.confidence) if promised else None
    return Band(upper, lower, confidence, decided)


def _with(
    old: BundlePoint,
    whole: OperatingPoints,
    name: str | None,
    point: OperatingPoint,
    bundle: Bundle,
) -> BundlePoint:
    """Return a point of several classes with the threshold of one of them changed."""
    before = {_name(of): each for of, each in whole.points.items()}[name]
    points = {of: point if _name(of) == name else each for of, each in whole.points.items()}
    added = before.guarantee is None and point.guarantee is not None
    promises = promised(bundle.points) + added
    confidence = whole.confidence
    if added and point.confidence is not None:
        confidence = together_after(confidence, point.confidence, promises=promises, added=True)
    if all(each.guarantee is None for each in points.values()):
        confidence = None
    made = replace(old, result=OperatingPoints(points, whole.unreachable, confidence))
    return _counted(made, bundle)


def _without(
    old: BundlePoint, whole: OperatingPoints, name: str | None, bundle: Bundle
) -> BundlePoint:
    """Return what remains of a point of several classes without one of them."""
    points = {of: each for of, each in whole.points.items() if _name(of) != name}
    made = replace(old, result=OperatingPoints(points, whole.unreachable, whole.confidence))
    return _counted(made, bundle)


def _counted(point: BundlePoint, bundle: Bundle) -> BundlePoint:
    """Count anew the labelled rows that more than one class flags."""
    assert isinstance(point.result, OperatingPoints)
    return replace(point, result=replace(point.result, flagged_twice=_flagged_twice(point, bundle)))


def _flagged_twice(point: BundlePoint, bundle: Bundle) -> int:
    """Count the labelled rows that more than one class flags."""
    if bundle.calib is None:
        return 0
    log_probs = None
    if point.decides_on == "calibrated" and bundle.calibration is not None:
        log_probs = bundle.calibration.log_probs(bundle.calib.logits)
    given = ModelScores("logits", bundle.calib.logits)
    said = point.apply_rules(given, log_probs, bundle.classes)
    return int((np.sum([acts for acts, _ in said], axis=0) > 1).sum())


def _names(classes: Iterable[Any]) -> list[str]:
    return [str(each) for each in classes]


def _name(of: Any) -> str | None:
    return None if of is None else str(of)
