"""Bundles with calibrate rows, whose truth is known: logits are right, and classes follow them."""

from dataclasses import replace

import numpy as np
from tests.unit.bundle.parts import temperature

from calibrant.bundle import BundlePoint, pack
from calibrant.bundle.calib_rows import CalibRows
from calibrant.ood import OodRule
from calibrant.thresholds import OperatingPoints, accuracy, npv, precision, select_band
from calibrant.thresholds.labelled_rows import LabelledRows

NAMES = ("defect", "parts", "other")
TWO = ("no", "yes")


def calib_rows(n=900, names=NAMES, seed=0, *, outside=0.0, weights=False):
    """Draw rows whose logits are the truth; some are of no class."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2.5, (n, len(names)))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = np.minimum((rng.random((n, 1)) > probs.cumsum(axis=1)).sum(axis=1), len(names) - 1)
    codes = np.where(rng.random(n) < outside, -1, codes)
    return CalibRows(logits, codes, rng.choice([1.0, 2.0], n) if weights else None)


def certified(rows, of, hold=precision >= 0.7, *, names=NAMES, share=1.0):
    """Return the point that a study would have certified."""
    labelled = LabelledRows(rows.logits, rows.codes, tuple(names), rows.weights)
    return labelled.select_point(of, (hold,), confidence=0.95, share=share)


def _points(rows):
    return [certified(rows, name, share=0.5) for name in ("defect", "parts")], {
        "provenance": {"confidence_together": 0.95}
    }


def _alternatives(rows):
    return [certified(rows, "defect"), certified(rows, "defect", precision >= 0.8)], {}


def _several(rows):
    points = {of: certified(rows, of, share=0.5) for of in ("defect", "parts")}
    return [OperatingPoints(points, {}, 0.95)], {}


def _calibrated(rows):
    return [BundlePoint(certified(rows, "defect"), "calibrated")], {"calibrator": temperature(2.0)}


def _scope(rows):
    return [certified(rows, "defect")], {"ood": OodRule("max_logit", -0.5, 0.95, 100)}


def _band(rows):
    band = select_band(rows.codes, logits=rows.logits, act=precision >= 0.8, clear=npv >= 0.8)
    ends = (replace(each, of="yes", classes=TWO) for each in (band.upper, band.lower))
    return [replace(band, **dict(zip(("upper", "lower"), ends, strict=True)))], {"classes": TWO}


KINDS = {
    "points": _points,
    "one point": lambda rows: ([certified(rows, "defect")], {}),
    "alternatives": _alternatives,
    "several classes": _several,
    "top label": lambda rows: ([certified(rows, None, accuracy >= 0.7)], {}),
    "calibrated": _calibrated,
    "out of scope": _scope,
    "band": _band,
    "no points": lambda rows: ([], {"calibrator": temperature(2.0)}),
}


def bundle(folder, kind="points", *, rows=None, calib=True):
    """Pack a bundle of a kind; `rows` are its calibrate rows, which may be left out."""
    rows = calib_rows(names=TWO if kind == "band" else NAMES) if rows is None else rows
    points, more = KINDS[kind](rows)
    more = {"classes": NAMES, **more}
    return pack(folder, points=points, calib=rows if calib else None, **more)
