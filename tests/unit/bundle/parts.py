"""Calibrators and operating points that the tests of bundles are made of."""

import math

import numpy as np

from calibrant.bundle.calibration import BundleCalibration
from calibrant.results import Interval
from calibrant.thresholds import (
    Band,
    OperatingPoint,
    OperatingPoints,
    RateValue,
    TargetUnreachable,
    npv,
    precision,
)

CLASSES = ("defect", "parts", "other")


def temperature(value=2.0, classes=CLASSES, **more):
    saved = {"format": 1, "method": "temperature", "classes": list(classes)}
    return BundleCalibration.from_dict({**saved, "params": {"temperature": value}, **more})


def point(of="defect", threshold=0.75, *, on="logits", classes=CLASSES, **changes):
    """Return an operating point as `select` would have chosen it."""
    about = "" if of is None else f" for class {str(of)!r}"
    fields = {
        "threshold": threshold,
        "logit": math.log(threshold / (1 - threshold)),
        "on": on,
        "of": of,
        "classes": classes,
        "hold": (precision >= 0.85,),
        "objective": "maximise recall",
        "confidence": 0.95,
        "guarantee": f"Precision is at least 85 %{about}, with 95 % confidence.",
        "why": None,
        "rates": {
            "precision": RateValue(0.9, Interval(0.86, 0.93, 0.95, "exact"), 300),
            "recall": RateValue(0.5, Interval(0.45, 0.55, 0.95, "exact"), 540),
        },
        "n": 2000,
        "positives": 540,
        "method": "exact binomial tests along the ranks",
    }
    return OperatingPoint(**{**fields, **changes})


def without_promise(of="defect", threshold=0.75, **changes):
    why = "the model was trained on these very rows: certify on others"
    return point(of, threshold, confidence=None, guarantee=None, why=why, **changes)


def points_of(*points, unreachable=(), confidence=0.95):
    failed = {
        of: TargetUnreachable(hold="precision>=0.99", n=2000, positives=40, of=of)
        for of in unreachable
    }
    return OperatingPoints({each.of: each for each in points}, failed, confidence)


def band(of="yes", lower=0.2, upper=0.8, *, on="logits", classes=("no", "yes")):
    above, below = (point(of, end, on=on, classes=classes) for end in (upper, lower))
    below = point(of, lower, on=on, classes=classes, hold=(npv >= 0.95,))
    return Band(above, below, 0.95, 0.6)


def rows(n=200, k=3, seed=0):
    """Return logits of n rows."""
    return np.random.default_rng(seed).normal(0, 3, (n, k))
