"""A promise on calibrated scores needs rows that the calibrator was not fitted on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrant.bundle.calib_rows import CalibRows
from calibrant.bundle.calibration import Calibration
from calibrant.bundle.points import BundlePoint
from calibrant.bundle.scores import places_of
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.errors import SplitMisuse
from calibrant.inputs import FloatArray
from calibrant.thresholds import LabelUse, OperatingPoint

__all__ = ["check_unseen"]

_SAME = 1e-9


def check_unseen(
    calibration: Calibration | None, points: Sequence[BundlePoint], calib: CalibRows | None
) -> None:
    """Refuse a promise that was certified on the calibrate rows, if they taught the calibrator.

    A point does not say on which rows it was chosen. It was on these if there are as many of them
    and it acts on the same share of them as often rightly.
    """
    if calibration is None or calib is None or not _has_seen(calibration, calib):
        return
    seen = LabelUse(calibrator=calibration.calibrator)
    log_probs = calibration.log_probs(calib.logits)
    for place, each in enumerate(points):
        for rule in each.rules if each.decides_on == "calibrated" else ():
            point = rule.point
            harm = seen.why_no_promise(top_label=point.of is None, n_classes=len(point.classes))
            if harm is None or point.guarantee is None:
                continue
            if _chosen_on(point, calib, log_probs, calibration.classes):
                raise SplitMisuse(
                    f"point {place} holds a promise that does not hold: it was certified on the "
                    f"calibrate rows, but {harm}; or choose it with "
                    "label_use=LabelUse(calibrator=...), which promises nothing."
                )


def _has_seen(calibration: Calibration, calib: CalibRows) -> bool:
    known = calib.codes >= 0  # rows of no class cannot teach a calibrator
    names = tuple(calibration.classes)
    rows = CalibrationRows(calib.logits[known], calib.codes[known], None, names)
    return calibration.calibrator.has_seen_rows(rows)


def _chosen_on(
    point: OperatingPoint, calib: CalibRows, log_probs: FloatArray, classes: Sequence[object]
) -> bool:
    """Whether rows do under a point what they did when it was chosen."""
    if point.n != len(calib):
        return False
    places = places_of(point.classes, classes, called=("a point", "the calibrator"))
    acts = point.act(logits=log_probs[:, places])
    any_class = point.of is None
    acted_as = log_probs.argmax(axis=1) if any_class else [*map(str, classes)].index(str(point.of))
    weights = np.ones(len(calib)) if calib.weights is None else calib.weights
    acted, right = (float(weights @ rows) for rows in (acts, acts & (calib.codes == acted_as)))
    here = {"coverage": acted / float(weights.sum())}
    here["accuracy" if any_class else "precision"] = right / max(acted, 1.0)
    told = {name: point.rates[name].value for name in here if name in point.rates}
    return all(
        (value := told.get(name)) is not None and abs(value - found) < _SAME
        for name, found in here.items()
    )
