"""Check that promises on calibrated scores use rows unseen by the calibrator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrant.bundle.calib_rows import CalibRows
from calibrant.bundle.calibration import BundleCalibration
from calibrant.bundle.points import BundlePoint
from calibrant.bundle.scores import class_positions
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.errors import SplitMisuse
from calibrant.inputs import FloatArray
from calibrant.thresholds import LabelUse, OperatingPoint

__all__ = ["check_unseen"]

_SAME = 1e-9


def check_unseen(
    calibration: BundleCalibration | None, points: Sequence[BundlePoint], calib: CalibRows | None
) -> None:
    """Raise `SplitMisuse` for a promise certified on rows that the calibrator was fitted on.

    A point does not record its rows. It is taken to be chosen on the calibrate rows if their number
    and its coverage and precision on them match.
    """
    if calibration is None or calib is None or not _has_seen(calibration, calib):
        return
    seen = LabelUse(calibrator=calibration.calibrator)
    log_probs = calibration.log_probs(calib.logits)
    for position, each in enumerate(points):
        for rule in each.rules if each.decides_on == "calibrated" else ():
            point = rule.point
            reason = seen.why_no_promise(top_label=point.of is None, n_classes=len(point.classes))
            if reason is None or point.guarantee is None:
                continue
            if _chosen_on(point, calib, log_probs, calibration.classes):
                raise SplitMisuse(
                    f"point {position} has an invalid promise: it was certified on the "
                    f"calibrate rows, but {reason}; or choose it with "
                    "label_use=LabelUse(calibrator=...), which gives no promise."
                )


def _has_seen(calibration: BundleCalibration, calib: CalibRows) -> bool:
    known = calib.codes >= 0  # rows of no class are not used for fitting
    names = tuple(calibration.classes)
    rows = CalibrationRows(calib.logits[known], calib.codes[known], None, names)
    return calibration.calibrator.has_seen_rows(rows)


def _chosen_on(
    point: OperatingPoint, calib: CalibRows, log_probs: FloatArray, classes: Sequence[object]
) -> bool:
    """Return whether a point has the same rates on these rows as recorded."""
    if point.n != len(calib):
        return False
    places = class_positions(point.classes, classes, owners=("a point", "the calibrator"))
    acts = point.act(logits=log_probs[:, places])
    any_class = point.of is None
    acted_as = log_probs.argmax(axis=1) if any_class else [*map(str, classes)].index(str(point.of))
    weights = np.ones(len(calib)) if calib.weights is None else calib.weights
    acted, right = (float(weights @ rows) for rows in (acts, acts & (calib.codes == acted_as)))
    rates = {"coverage": acted / float(weights.sum())}
    rates["accuracy" if any_class else "precision"] = right / max(acted, 1.0)
    recorded = {name: point.rates[name].value for name in rates if name in point.rates}
    return all(
        (value := recorded.get(name)) is not None and abs(value - value_here) < _SAME
        for name, value_here in rates.items()
    )
