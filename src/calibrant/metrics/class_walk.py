"""Per-class results of an evaluation, computed in one pass over the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.metrics.calibration_figures import Estimate, MeanError, Options
from calibrant.metrics.curves import class_curve, plotted_classes
from calibrant.metrics.influence_figures import ClassRanks
from calibrant.metrics.per_class import class_row
from calibrant.metrics.summary import SufficientStatistics
from calibrant.metrics.tally import Tally

__all__ = ["ClassResults", "evaluate_classes"]


@dataclass(frozen=True)
class ClassResults:
    """Results over all classes; `last` is the tally of the last one, the positive class of two."""

    errors: dict[str, Estimate]
    ranks: ClassRanks
    table: tuple[dict[str, Any], ...]
    curves: list[dict[str, Any]]
    last: Tally


def evaluate_classes(
    summary: SufficientStatistics, options: Options, rng: np.random.Generator
) -> ClassResults:
    """Evaluate each class once, since its tally is costly and is needed by five metrics."""
    errors = {
        "ece_classwise": MeanError("width", options, rng),
        "ace": MeanError("mass", options, rng),
    }
    ranks = ClassRanks(len(summary.classes), summary.row_weights)
    plotted = plotted_classes(summary)
    table, curves = [], []
    for k, view in enumerate(summary.by_class()):
        for error in errors.values():
            error.add(view.tally)
        auroc, auprc = ranks.add(view)
        row = class_row(summary, k, view.tally, options.confidence)
        ece = errors["ece_classwise"].values[-1]
        table.append({**row, "auroc": auroc, "auprc": auprc, "ece_ew": ece})
        if k in plotted:
            curves.append(class_curve(summary.classes[k], view.tally, len(plotted)))
    return ClassResults(
        {name: error.estimate() for name, error in errors.items()},
        ranks,
        tuple(table),
        curves,
        view.tally,
    )
