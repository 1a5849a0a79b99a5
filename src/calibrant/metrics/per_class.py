"""The per-class table of an evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.metrics.binning import width_edges
from calibrant.metrics.classification import f1_of
from calibrant.metrics.ranking import auprc_influence, auroc_influence
from calibrant.metrics.seminorms import binned_size
from calibrant.metrics.summary import Confusion, Summary
from calibrant.stats import clopper_pearson, wilson

__all__ = ["per_class_table"]


def per_class_table(summary: Summary, confidence: float) -> tuple[dict[str, Any], ...]:
    """Return one row per class: rows, precision and recall with intervals, F1, ranking, ECE."""
    f1 = f1_of(summary.confusion.weight)
    table = []
    for k, view in enumerate(summary.by_class()):
        tally = view.tally
        ranked = 0 < tally.count[:, 1].sum() < tally.n
        table.append(
            {
                "class": summary.classes[k],
                "rows": round(float(tally.count[:, 1].sum())),
                "predicted": round(float(summary.confusion.count[:, k].sum())),
                "precision": _rate(summary.confusion, k, 0, confidence),
                "recall": _rate(summary.confusion, k, 1, confidence),
                "f1": None if np.isnan(f1[k]) else float(f1[k]),
                "auroc": auroc_influence(tally)[0] if ranked else None,
                "auprc": auprc_influence(tally)[0] if ranked else None,
                "ece_ew": float(binned_size(tally, width_edges(15))(tally.residual)),
                "mean_score": tally.mean_score,
                "event_rate": tally.event_rate,
            }
        )
    return tuple(table)


def _rate(confusion: Confusion, k: int, axis: int, confidence: float) -> dict[str, Any]:
    """Precision (axis 0) or recall (axis 1) of class k with its interval."""
    rows, weight, square = (
        part[:, k] if axis == 0 else part[k]
        for part in (confusion.count, confusion.weight, confusion.square)
    )
    n = float(rows.sum())
    if weight.sum() == 0:
        return {"value": None, "low": None, "high": None, "n": 0}
    value = float(weight[k] / weight.sum())
    if np.array_equal(rows, weight):
        found = clopper_pearson(rows[k], n, confidence=confidence)
    else:  # weighted rows tell less than their number: Kish's effective n
        effective = float(weight.sum() ** 2 / square.sum())
        found = wilson(value * effective, effective, confidence=confidence)
    return {"value": value, "low": found.low, "high": found.high, "n": round(n)}
