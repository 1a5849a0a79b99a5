"""One walk through the classes: everything that is known class by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.metrics.calibration_figures import Estimate, MeanError, Options
from calibrant.metrics.curves import class_curve, drawn_classes
from calibrant.metrics.influence_figures import ClassRanks
from calibrant.metrics.per_class import class_row
from calibrant.metrics.summary import Summary
from calibrant.metrics.tally import Tally

__all__ = ["ClassWalk", "walk_classes"]


@dataclass(frozen=True)
class ClassWalk:
    """What the walk brought home; `last` is the positive class of a binary problem."""

    errors: dict[str, Estimate]
    ranks: ClassRanks
    table: tuple[dict[str, Any], ...]
    curves: list[dict[str, Any]]
    last: Tally


def walk_classes(summary: Summary, options: Options, rng: np.random.Generator) -> ClassWalk:
    """Visit each class once; its tally is needed by five figures and is costly to make."""
    errors = {
        "ece_classwise": MeanError("width", options, rng),
        "ace": MeanError("mass", options, rng),
    }
    ranks = ClassRanks(len(summary.classes), summary.row_weights)
    drawn = drawn_classes(summary)
    table, curves = [], []
    for k, view in enumerate(summary.by_class()):
        for error in errors.values():
            error.add(view.tally)
        auroc, auprc = ranks.add(view)
        row = class_row(summary, k, view.tally, options.confidence)
        ece = errors["ece_classwise"].values[-1]
        table.append({**row, "auroc": auroc, "auprc": auprc, "ece_ew": ece})
        if k in drawn:
            curves.append(class_curve(summary.classes[k], view.tally, len(drawn)))
    return ClassWalk(
        {name: error.estimate() for name, error in errors.items()},
        ranks,
        tuple(table),
        curves,
        view.tally,
    )
