"""Small bundles of every kind that is served."""

from pathlib import Path

from tests.unit.bundle.model_parts import TABLE, TEXTS, table_scorer, text_scorer
from tests.unit.bundle.parts import CLASSES, band, point, temperature

from calibrant.bundle import BundlePoint, pack
from calibrant.ood import OodRule
from calibrant.serving.bundle_slot import BundleSlot

__all__ = ["CLASSES", "TABLE", "TEXTS", "logits_bundle", "served", "table_bundle", "text_bundle"]


def logits_bundle(folder, kind="points", *, warmth=2.0):
    """Pack a bundle without a model; `warmth`, its temperature, tells one from another."""
    calibrated = {"calibrator": temperature(warmth), "force": True}
    if kind == "points":  # the last is an alternative to the first
        chosen = (point("defect", 0.75), point("parts", 0.6), point("defect", 0.5))
        points = [BundlePoint(each, "calibrated") for each in chosen]
        actions = {"defect": "refund", "parts": "send part"}
        return pack(folder, points=points, actions=actions, **calibrated)
    if kind == "no points":
        return pack(folder, **calibrated)
    if kind == "no calibrator":
        return pack(folder, points=[point("defect", 0.75)], force=True)
    if kind == "two classes":
        return pack(folder, points=[band()], actions={"yes": "refund"}, force=True)
    if kind == "other scale":  # decides on the model's own scores, and keeps their order
        chosen = BundlePoint(point("yes", 0.75, classes=("no", "yes")), "raw")
        calibration = temperature(warmth, ("no", "yes"))
        return pack(folder, points=[chosen], calibrator=calibration, force=True)
    rule = OodRule("max_logit", -2.0, 0.95, 100)  # flags rows without a logit of at least 2
    if kind == "out of scope":
        return pack(folder, points=[BundlePoint(point(), "calibrated")], ood=rule, **calibrated)
    assert kind == "out of scope, no points"
    return pack(folder, ood=rule, **calibrated)


def text_bundle(folder):
    points = [BundlePoint(point("parts", 0.5), "calibrated")]
    return pack(folder, scorer=text_scorer(), calibrator=temperature(), points=points)


def table_bundle(folder):
    points = [point("defect", 0.5)]
    return pack(folder, scorer=table_scorer(), points=points, actions={"defect": "refund"})


def served(folder: Path):
    """Load a bundle as the service does."""
    return BundleSlot(folder, "cpu").load()


def rows_of(table):
    """Return the rows of a table of columns."""
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
