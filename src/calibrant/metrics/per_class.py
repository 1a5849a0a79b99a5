"""The per-class table of an evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.metrics.summary import Confusion, SufficientStatistics
from calibrant.metrics.tally import Tally
from calibrant.stats import clopper_pearson, wilson

__all__ = ["class_row"]


def class_row(
    summary: SufficientStatistics, k: int, tally: Tally, confidence: float
) -> dict[str, Any]:
    """Return the table row of class k: counts, precision and recall with intervals, F1, score."""
    weight = summary.confusion.weight
    either = float(weight[:, k].sum() + weight[k].sum())  # cheaper than F1 of the whole matrix
    return {
        "class": summary.classes[k],
        "rows": round(float(tally.count[:, 1].sum())),
        "predicted": round(float(summary.confusion.count[:, k].sum())),
        "precision": _rate(summary.confusion, k, 0, confidence),
        "recall": _rate(summary.confusion, k, 1, confidence),
        "f1": float(2 * weight[k, k]) / either if either else None,
        "mean_score": tally.mean_score,
        "event_rate": tally.event_rate,
    }


def _rate(confusion: Confusion, k: int, axis: int, confidence: float) -> dict[str, Any]:
    """Return the precision (axis 0) or recall (axis 1) of class k with its interval."""
    rows, weight, square = (
        part[:, k] if axis == 0 else part[k]
        for part in (confusion.count, confusion.weight, confusion.square)
    )
    n = float(rows.sum())
    if weight.sum() == 0:
        return {"value": None, "low": None, "high": None, "n": 0}
    value = float(weight[k] / weight.sum())
    if np.array_equal(rows, weight):
        interval = clopper_pearson(rows[k], n, confidence=confidence)
    else:  # Kish's effective number of rows
        effective = float(weight.sum() ** 2 / square.sum())
        interval = wilson(value * effective, effective, confidence=confidence)
    return {"value": value, "low": interval.low, "high": interval.high, "n": round(n)}
