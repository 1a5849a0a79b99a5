"""Sufficient statistics of an evaluation, from rows in memory or from a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.inputs import FloatArray, IntArray, ScoredRows
from calibrant.metrics.classification import confusion_of
from calibrant.metrics.problem import class_problem, target_problem
from calibrant.metrics.proper import row_brier, row_nll
from calibrant.metrics.tally import Tally, tally_rows, tally_with_index


@dataclass(frozen=True)
class Moments:
    """Mean of a row-wise loss, its standard error, and the number of infinite rows."""

    mean: float
    error: float
    infinite: int = 0


@dataclass(frozen=True)
class Confusion:
    """Rows, weights and squared weights by label (row) and prediction (column)."""

    count: FloatArray
    weight: FloatArray
    square: FloatArray


@dataclass(frozen=True)
class ClassView:
    """One class against the rest: its tally and, for rows in memory, their index in it."""

    tally: Tally
    index: IntArray | None = None
    event: IntArray | None = None


@dataclass(frozen=True)
class SufficientStatistics:
    """Sufficient statistics of all metrics.

    `by_class` yields the K one-vs-rest problems one at a time, so that a thousand classes need the
    memory of one.
    """

    classes: tuple[Any, ...]
    n: int
    top: Tally
    by_class: Callable[[], Iterator[ClassView]]
    confusion: Confusion
    nll: Moments
    brier: Moments
    weighted: bool
    row_weights: FloatArray | None = None


def compute_statistics(scored: ScoredRows) -> SufficientStatistics:
    """Compute the statistics of rows in memory."""
    weights = scored.weights
    count = confusion_of(scored, None)
    confusion = (
        Confusion(count, count, count)
        if weights is None
        else Confusion(count, confusion_of(scored, weights), confusion_of(scored, weights**2))
    )
    return SufficientStatistics(
        classes=scored.classes,
        n=scored.n,
        top=tally_rows(*target_problem(scored, "top-label"), weights),
        by_class=lambda: _class_views(scored),
        confusion=confusion,
        nll=moments(row_nll(scored), weights),
        brier=moments(row_brier(scored), weights),
        weighted=weights is not None,
        row_weights=weights,
    )


def moments(values: FloatArray, weights: FloatArray | None) -> Moments:
    """Return mean and standard error of row-wise losses, infinite if any row is."""
    infinite = int(np.isinf(values).sum())
    if infinite:
        return Moments(np.inf, np.inf, infinite)
    mean = float(np.average(values, weights=weights))
    share = 1.0 / len(values) if weights is None else weights / weights.sum()
    spread = float(np.sqrt(((share * (values - mean)) ** 2).sum()))
    return Moments(mean, spread * np.sqrt(len(values) / max(1, len(values) - 1)))


def _class_views(scored: ScoredRows) -> Iterator[ClassView]:
    for k in range(len(scored.classes)):
        scores, events = class_problem(scored, k)
        tally, index = tally_with_index(scores, events, scored.weights)
        yield ClassView(tally, index, events.astype(np.int64))
