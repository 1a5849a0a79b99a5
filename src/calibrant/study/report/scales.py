"""Where the thresholds of a study lie among calibrated probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calibrant.bundle import Bundle
from calibrant.bundle.decision_rules import calibrate_threshold
from calibrant.study.result import PointResult
from calibrant.thresholds import OperatingPoint


def place_thresholds(points: Sequence[PointResult], bundle: Bundle) -> tuple[PointResult, ...]:
    """Add the place of each threshold on the bundle's calibrated scale, where it has one."""
    calibration = bundle.calibration
    if calibration is None or calibration.method == "identity":
        return tuple(points)
    placed = []
    for point in points:
        place = None
        if isinstance(point.result, OperatingPoint):
            place = calibrate_threshold(calibration, point.result, bundle.classes)
        placed.append(replace(point, calibrated_threshold=None if place is None else place.prob))
    return tuple(placed)
