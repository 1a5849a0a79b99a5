"""Metrics as plain numbers, fast enough for every epoch of a training run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import (
    FloatArray,
    IntArray,
    ScoredRows,
    Target,
    as_scored_rows,
    resolve_single_target,
)
from calibrant.metrics.binning import check_bins, mass_edges, width_edges
from calibrant.metrics.catalogue import NAMES
from calibrant.metrics.classification import (
    confusion_of,
    f1_of,
    macro,
    matthews_of,
    precision_of,
    recall_of,
)
from calibrant.metrics.debiased import debiased_square
from calibrant.metrics.ece import classwise_error
from calibrant.metrics.problem import top_label
from calibrant.metrics.proper import row_brier, row_nll
from calibrant.metrics.ranking import (
    auprc_influence,
    aurc_influence,
    auroc_influence,
    mean_over_classes,
)
from calibrant.metrics.seminorms import binned_size, running_size
from calibrant.metrics.smooth import tally_smooth
from calibrant.metrics.sweep import sweep_edges
from calibrant.metrics.tally import Tally, tally_rows

QUICK = (
    "ece_ew", "ece_em", "mce", "ece_debiased", "ece_classwise", "ece_smooth", "ks", "nll", "brier",
    "accuracy", "precision_macro", "recall_macro", "f1_macro",
)  # fmt: skip
"""Default metrics of `measure`: all except sweep and ranking metrics, which are slower."""


def measure(
    labels: Any,
    probs: Any,
    *,
    names: Sequence[str] = QUICK,
    classes: Sequence[Any] | None = None,
    target: Target | None = None,
    weights: Any = None,
    n_bins: int = 15,
) -> dict[str, float]:
    """Compute several metrics at once, as plain numbers.

    The values are those of `evaluate`, without intervals, floors and verdict. Input validation,
    prediction and sorting are done once for all metrics. For decisions use `evaluate`.

    Parameters
    ----------
    labels : (n,) labels
    probs : (n,) P(positive) or (n, K)
    names : metric names, from `evaluate(...).figures`
    classes, target, weights, n_bins : as in `evaluate`

    Examples
    --------
    >>> measure([0, 1, 1, 1], [0.25, 0.5, 0.75, 1.0], names=["ks", "accuracy"])
    {'ks': 0.125, 'accuracy': 0.75}
    """
    unknown = [name for name in names if name not in _VALUES]
    if unknown:
        raise InputError(f"names contains {unknown[0]!r}, but must be among {', '.join(NAMES)}.")
    check_bins(n_bins, "width", 1)
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    shared = _SharedResults(scored, resolve_single_target(target, len(scored.classes)), n_bins)
    return {name: float(_VALUES[name](shared)) for name in names}


class _SharedResults:
    """Intermediate results shared by several metrics, computed on first use."""

    def __init__(self, scored: ScoredRows, target: Target, n_bins: int) -> None:
        self.scored, self.target, self.n_bins = scored, target, n_bins

    @cached_property
    def predicted(self) -> tuple[NDArray[np.floating[Any]], IntArray]:
        return top_label(self.scored)

    @cached_property
    def top(self) -> Tally:
        confidence, predicted = self.predicted
        return tally_rows(confidence, predicted == self.scored.labels, self.scored.weights)

    @cached_property
    def tally(self) -> Tally:
        if self.target != "positive":
            return self.top
        scored = self.scored
        return tally_rows(scored.positive, scored.labels == 1, scored.weights)

    @cached_property
    def mass(self) -> FloatArray:
        return mass_edges(self.tally.score, self.tally.mass, self.n_bins)

    @cached_property
    def confusion(self) -> FloatArray:
        return confusion_of(self.scored, self.scored.weights, self.predicted[1])

    def size(self, edges: FloatArray, norm: float = 1, of: Tally | None = None) -> float:
        tally = self.tally if of is None else of
        return float(binned_size(tally, edges, norm)(tally.residual))

    def mean(self, rows: Callable[[ScoredRows], FloatArray]) -> float:
        return float(np.average(rows(self.scored), weights=self.scored.weights))


_VALUES: dict[str, Callable[[_SharedResults], float]] = {
    "ece_ew": lambda s: s.size(width_edges(s.n_bins)),
    "ece_em": lambda s: s.size(s.mass),
    "mce": lambda s: s.size(width_edges(s.n_bins), np.inf),
    "ece_debiased": lambda s: float(np.sqrt(max(0.0, debiased_square(s.tally, s.mass)))),
    "ece_sweep_ew": lambda s: s.size(sweep_edges(s.tally, "width")),
    "ece_sweep_em": lambda s: s.size(sweep_edges(s.tally, "mass")),
    "ece_classwise": lambda s: classwise_error(s.scored, s.n_bins, "width", 1),
    "ace": lambda s: classwise_error(s.scored, s.n_bins, "mass", 1),
    "ece_smooth": lambda s: tally_smooth(s.tally),
    "ks": lambda s: float(running_size(s.tally.residual)),
    "nll": lambda s: s.mean(row_nll),
    "brier": lambda s: s.mean(row_brier),
    "accuracy": lambda s: float(np.trace(s.confusion) / s.confusion.sum()),
    "precision_macro": lambda s: macro(precision_of(s.confusion), s.confusion),
    "recall_macro": lambda s: macro(recall_of(s.confusion), s.confusion),
    "f1_macro": lambda s: macro(f1_of(s.confusion), s.confusion),
    "matthews": lambda s: matthews_of(s.confusion),
    "auroc": lambda s: mean_over_classes(s.scored, lambda tally: auroc_influence(tally)[0]),
    "auprc": lambda s: mean_over_classes(s.scored, lambda tally: auprc_influence(tally)[0]),
    "aurc": lambda s: aurc_influence(s.top)[0],
    "ece_ew_top_label": lambda s: s.size(width_edges(s.n_bins), of=s.top),
    "ece_em_top_label": lambda s: s.size(mass_edges(s.top.score, s.top.mass, s.n_bins), of=s.top),
}
