"""What an evaluation needs to know of the data, whether from rows in memory or from a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.inputs import FloatArray, IntArray, Scored
from calibrant.metrics.classification import confusion_of
from calibrant.metrics.problem import class_problem, problem
from calibrant.metrics.proper import row_brier, row_nll
from calibrant.metrics.tally import Tally, tally_and_places, tally_rows

__all__ = ["ClassView", "Confusion", "Moments", "Summary", "moments", "summarise"]


@dataclass(frozen=True)
class Moments:
    """Mean of a row-wise loss, its standard error, and how many rows were infinite."""

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
    """One class against the rest: its tally and, from memory, where each row stands in it."""

    tally: Tally
    place: IntArray | None = None
    event: IntArray | None = None


@dataclass(frozen=True)
class Summary:
    """Sufficient statistics of all figures.

    `by_class` walks through the K one-vs-rest problems one at a time, so that a thousand classes
    need the memory of one.
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


def summarise(scored: Scored) -> Summary:
    """Summarise rows in memory."""
    weights = scored.weights
    count = confusion_of(scored, None)
    confusion = (
        Confusion(count, count, count)
        if weights is None
        else Confusion(count, confusion_of(scored, weights), confusion_of(scored, weights**2))
    )
    return Summary(
        classes=scored.classes,
        n=scored.n,
        top=tally_rows(*problem(scored, "top-label"), weights),
        by_class=lambda: _views(scored),
        confusion=confusion,
        nll=moments(row_nll(scored), weights),
        brier=moments(row_brier(scored), weights),
        weighted=weights is not None,
        row_weights=weights,
    )


def moments(values: FloatArray, weights: FloatArray | None) -> Moments:
    """Return mean and standard error; an infinite row makes the mean infinite."""
    infinite = int(np.isinf(values).sum())
    if infinite:
        return Moments(np.inf, np.inf, infinite)
    mean = float(np.average(values, weights=weights))
    share = 1.0 / len(values) if weights is None else weights / weights.sum()
    spread = float(np.sqrt(((share * (values - mean)) ** 2).sum()))
    return Moments(mean, spread * np.sqrt(len(values) / max(1, len(values) - 1)))


def _views(scored: Scored) -> Iterator[ClassView]:
    for k in range(len(scored.classes)):
        scores, events = class_problem(scored, k)
        tally, place = tally_and_places(scores, events, scored.weights)
        yield ClassView(tally, place, events.astype(np.int64))
