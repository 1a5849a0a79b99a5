"""Rules of a bundle as people see them: the threshold on the decision score, and calibrated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.bundle.calibration import BundleCalibration
from calibrant.bundle.decisions import finite_or_none
from calibrant.bundle.points import BundlePoint, DecidesOn, Rule
from calibrant.convert import log_odds_from_logits, probs_from_logits
from calibrant.inputs import FloatArray
from calibrant.reports.threshold.wording import threshold_words
from calibrant.thresholds import OperatingPoint

_SAME = 1e-9
"""Calibrated log-odds that differ by less are one threshold."""


@dataclass(frozen=True)
class CalibratedThreshold:
    """Where a threshold lies on the scale of calibrated probabilities."""

    prob: float
    logit: float  # the same as log-odds, where the probability rounds to 0 or 1


@dataclass(frozen=True)
class DecisionRule:
    """One rule of a bundle: a threshold on a decision score."""

    position: int  # of its operating point
    rule: Rule
    decides_on: DecidesOn
    # None if the calibrator does not keep the order of rows by this score: then no calibrated
    # probability separates them
    calibrated: CalibratedThreshold | None
    same_scale: bool  # whether decision scores are the probabilities that the bundle returns
    alternative: bool = False  # whether it decides only if its point is named

    @property
    def moved(self) -> CalibratedThreshold | None:
        """`calibrated` where it is another number than the threshold itself."""
        return None if self.same_scale else self.calibrated

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape: keys may be added, never renamed."""
        point = self.rule.point
        return {
            "operating_point": self.position,
            "rule": self.rule.name,
            "class": None if point.of is None else str(point.of),
            "clears": self.rule.clears,
            "decides_on": self.decides_on,
            "scale": point.scale,
            "threshold": finite_or_none(point.decision_threshold),
            "calibrated_threshold": None if self.calibrated is None else self.calibrated.prob,
            "same_scale": self.same_scale,
            "alternative": self.alternative,
        }


def describe_rule(rule: Mapping[str, Any]) -> str:
    """Describe a rule, given as its `to_dict`, with its threshold on both scales."""
    does, threshold = rule["rule"], rule["threshold"]
    does = does[:1].upper() + does[1:]
    if threshold is None:  # infinite
        return f"{does}: never"
    log_odds = rule["scale"] == "log-odds"
    shown = f"{threshold:.6g}" if log_odds else threshold_words(threshold)
    moved = None if rule["same_scale"] else rule["calibrated_threshold"]
    more = "" if moved is None else f" (calibrated probability {threshold_words(moved)})"
    return f"{does} {'below' if rule['clears'] else 'from'} a decision score of {shown}{more}"


def decision_rules(
    points: Sequence[BundlePoint],
    calibration: BundleCalibration | None,
    classes: Sequence[Any],
    alternatives: Sequence[bool],
) -> tuple[DecisionRule, ...]:
    """Return every rule of the points, in their order."""
    same = calibration is None or calibration.method == "identity"
    return tuple(
        DecisionRule(
            position=i,
            rule=rule,
            decides_on=each.decides_on,
            calibrated=_calibrated(rule.point, each.decides_on, calibration, classes),
            same_scale=same or each.decides_on == "calibrated",
            alternative=alternatives[i],
        )
        for i, each in enumerate(points)
        for rule in each.rules
    )


def _calibrated(
    point: OperatingPoint,
    decides_on: DecidesOn,
    calibration: BundleCalibration | None,
    classes: Sequence[Any],
) -> CalibratedThreshold | None:
    if calibration is None:
        return None
    if decides_on == "calibrated" and math.isfinite(point.logit):
        return CalibratedThreshold(point.threshold, point.logit)
    return calibrate_threshold(calibration, point, classes)


def calibrate_threshold(
    calibration: BundleCalibration, point: OperatingPoint, classes: Sequence[Any]
) -> CalibratedThreshold | None:
    r"""Return where a threshold on the model's scores lies on the calibrated scale, if anywhere.

    $$ p_k \ge t \iff p'_k \ge g(t) $$

    holds for a class k of which the calibrator keeps the order, p' = g(p). For predictions of any
    class it must keep the most probable class too, and map t to the same number for every class.
    A threshold that acts on every row, or on none, has no place.
    """
    if not math.isfinite(point.logit):
        return None
    names = [str(name) for name in classes]
    calibrator, any_class = calibration.calibrator, point.of is None
    positions = range(len(names)) if any_class else [names.index(str(point.of))]
    if any_class and not calibrator.keeps_argmax:
        return None
    if not all(calibrator.keeps_order_of(position) for position in positions):
        return None
    odds = np.array([_new_odds(calibration, point.logit, k, len(names)) for k in positions])
    if np.ptp(odds) > _SAME:
        return None
    return CalibratedThreshold(float(probs_from_logits(odds[:1])[0]), float(odds[0]))


def _new_odds(calibration: BundleCalibration, odds: float, position: int, k: int) -> float:
    """Return the calibrated log-odds of a class whose log-odds are given, the others alike."""
    logits = np.zeros((1, k))
    logits[0, position] = odds + math.log(k - 1)
    new: FloatArray = log_odds_from_logits(calibration.log_probs(logits))
    return float(new[0, position]) if k > 2 else float(new[0] if position else -new[0])
