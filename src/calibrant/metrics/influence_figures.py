"""Metrics that are smooth in the data, with intervals from the influence of each row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray
from calibrant.metrics.classification import (
    f1_of,
    macro,
    matthews_of,
    precision_of,
    present_classes,
    recall_of,
)
from calibrant.metrics.ranking import auprc_influence, aurc_influence, auroc_influence
from calibrant.metrics.summary import ClassView, Confusion, Moments
from calibrant.metrics.tally import Tally
from calibrant.results import Interval
from calibrant.stats import clopper_pearson, wald_interval

NamedEstimate = tuple[str, float, Interval]

_ADDED = 3.0  # Variance factor of an added row; see `add_pseudocounts`

_FEW = 10  # Number of rows below which the variance of a class is not trusted


def loss_interval(moments: Moments, n: int, confidence: float) -> Interval | None:
    """Return the interval of a mean loss on the log scale (losses are right-skewed).

    None if the rows show no variation, as a single row does.
    """
    if moments.error <= 0:
        return None
    return wald_interval(moments.mean, moments.error, n=n, scale="log", confidence=confidence)


def confusion_estimates(
    confusion: Confusion, *, weighted: bool, confidence: float
) -> Iterator[NamedEstimate]:
    """Yield accuracy (exact interval if rows have no weights), macro metrics and Matthews."""
    weight, total = confusion.weight, confusion.weight.sum()
    right, n = np.trace(confusion.count), confusion.count.sum()
    rows = confusion.count.sum(axis=1)
    smallest = float(rows[rows > 0].min())
    accuracy = float(np.trace(weight) / total)
    if weighted:
        yield (
            "accuracy",
            accuracy,
            _bounded(
                accuracy, _error(confusion, np.eye(len(weight)) - accuracy), float(n), confidence
            ),
        )
    else:
        yield "accuracy", accuracy, clopper_pearson(right, n, confidence=confidence)
    smoothed = add_pseudocounts(confusion)
    noise = {name: influence for name, _, influence in macro_influences(smoothed.weight)}
    for name, value, _ in macro_influences(weight):
        error = _error(smoothed, noise[name])
        if name == "matthews":  # a correlation in [-1, 1] instead of [0, 1]
            half = _bounded((1 + value) / 2, error / 2, smallest, confidence)
            yield name, value, replace(half, low=2 * half.low - 1, high=2 * half.high - 1)
        else:
            yield name, value, _bounded(value, error, smallest, confidence)


def add_pseudocounts(confusion: Confusion) -> Confusion:
    """Add pseudocounts to classes with too few rows to estimate standard errors.

    A class that is predicted once, and correctly, shows no variance, though nothing is known about
    its precision. Each class with fewer than ten rows or predictions, or with none wrong or none
    correct, gains one correct row, one false positive and one false negative of mean weight; the
    wrong ones are spread over the other classes. This is Agresti and Coull's adjustment for
    proportions. In the variance an added row counts three times, because a class that is predicted
    once has the error of one row, not of three. Point estimates never use these counts.
    """
    used = present_classes(confusion.weight)
    rows, k = confusion.count.sum(), int(used.sum())
    sparse = used & (_is_sparse(confusion.count) | _is_sparse(confusion.count.T))
    if k < 2 or not sparse.any():
        return confusion
    either = (sparse[:, None] | sparse) & used[:, None] & used
    more = np.where(np.eye(len(used), dtype=bool), 1.0 * sparse, either / (k - 1))
    return replace(
        confusion,
        count=confusion.count + more,
        weight=confusion.weight + more * (confusion.weight.sum() / rows),
        square=confusion.square + _ADDED * more * (confusion.square.sum() / rows),
    )


def _is_sparse(count: FloatArray) -> NDArray[np.bool_]:
    """Return whether a column has fewer than ten rows, or all or none of them correct."""
    total, correct = count.sum(axis=0), np.diagonal(count)
    return np.asarray((total < _FEW) | (correct == 0) | (correct == total))


def aurc_estimate(top: Tally, confidence: float) -> NamedEstimate:
    """Return the AURC of the top label with its interval."""
    value, influence = aurc_influence(top)
    error = float(np.sqrt((top.square * influence**2).sum()) / top.total)
    return "aurc", value, _bounded(value, error, top.n, confidence)


class ClassRanks:
    """AUROC and AUPRC of each class, and their means over the classes that can be ranked.

    Of two classes only the positive one enters the means, because the other is its mirror image.
    """

    def __init__(self, n_classes: int, weights: FloatArray | None) -> None:
        self.binary = n_classes == 2
        self.means = {name: ClassMean(weights) for name in ("auroc", "auprc")}
        self.smallest = np.inf
        self.n_added = 0

    def add(self, view: ClassView) -> tuple[float | None, float | None]:
        """Add a class; return its AUROC and AUPRC, or None if it cannot be ranked."""
        self.n_added += 1
        rest, events = view.tally.count.sum(axis=0)
        if min(rest, events) == 0:
            return None, None
        results = auroc_influence(view.tally), auprc_influence(view.tally)
        if not self.binary or self.n_added == 2:
            self.smallest = min(self.smallest, events, rest)
            for mean, (value, influence) in zip(self.means.values(), results, strict=True):
                mean.add(view, value, influence)
        return results[0][0], results[1][0]

    def estimates(self, confidence: float) -> Iterator[NamedEstimate]:
        """Yield the means with their intervals."""
        for name, mean in self.means.items():
            if mean.values:
                value, error = mean.result()
                yield name, value, _bounded(value, error, float(self.smallest), confidence)


class ClassMean:
    """Mean of a metric over classes with its standard error.

    With rows at hand their influences add up exactly; from a stream only each class's own error
    is known, and their mean is an upper limit.
    """

    def __init__(self, weights: FloatArray | None) -> None:
        self.weights = weights
        self.values: list[float] = []
        self.errors: list[float] = []
        self.rows: FloatArray | None = None

    def add(self, view: ClassView, value: float, influence: FloatArray) -> None:
        """Add one class with the influence (C, 2) of its rows."""
        tally = view.tally
        self.values.append(value)
        self.errors.append(float(np.sqrt((tally.square * influence**2).sum()) / tally.total))
        if view.index is not None:
            per_row = influence[view.index, view.event]
            self.rows = per_row if self.rows is None else self.rows + per_row

    def result(self) -> tuple[float, float]:
        """Return the mean and its standard error."""
        value, k = float(np.mean(self.values)), len(self.values)
        if self.rows is None or k == 1:
            return value, float(np.mean(self.errors))
        share = 1.0 / len(self.rows) if self.weights is None else self.weights / self.weights.sum()
        return value, float(np.sqrt(((share * self.rows / k) ** 2).sum()))


def macro_influences(weight: FloatArray) -> Iterator[tuple[str, float, FloatArray]]:
    """Yield the name, value and influence (by label and prediction) of each macro metric."""
    total, used = weight.sum(), present_classes(weight)
    share = np.where(used, 1.0 / used.sum(), 0.0)
    actual, predicted = weight.sum(axis=1), weight.sum(axis=0)
    hit = np.eye(len(weight))
    precision, recall, f1 = (np.nan_to_num(g(weight)) for g in (precision_of, recall_of, f1_of))
    by_prediction = share * total / np.where(predicted > 0, predicted, 1.0)
    by_label = share * total / np.where(actual > 0, actual, 1.0)
    both = share * total / np.where(actual + predicted > 0, actual + predicted, 1.0)
    yield "precision_macro", macro(precision, weight), (hit - precision) * by_prediction
    yield "recall_macro", macro(recall, weight), (hit - recall[:, None]) * by_label[:, None]
    yield (
        "f1_macro",
        macro(f1, weight),
        (hit - f1[:, None]) * both[:, None] + (hit - f1) * both,
    )
    yield "matthews", matthews_of(weight), _matthews_influence(weight, hit)


def _matthews_influence(weight: FloatArray, hit: FloatArray) -> FloatArray:
    total, right = weight.sum(), np.trace(weight)
    actual, predicted = weight.sum(axis=1), weight.sum(axis=0)
    free_p = total**2 - predicted @ predicted
    free_a = total**2 - actual @ actual
    if free_p <= 0 or free_a <= 0:
        return np.zeros_like(weight)
    above = hit * total + right - actual[None, :] - predicted[:, None]
    drift = (total - predicted)[None, :] / free_p + (total - actual)[:, None] / free_a
    return np.asarray(total * (above / np.sqrt(free_p * free_a) - matthews_of(weight) * drift))


def _error(confusion: Confusion, influence: FloatArray) -> float:
    return float(np.sqrt((confusion.square * influence**2).sum()) / confusion.weight.sum())


def _bounded(value: float, error: float, n: float, confidence: float) -> Interval:
    """Return an interval within [0, 1]; at 0 and 1, without variance, that of a proportion."""
    if error <= 1e-12 * max(value, 1e-300) or value in (0.0, 1.0):
        exact = clopper_pearson(value * n, n, confidence=confidence)
        method = "no variation seen: exact interval of a proportion at the scarcest class's n"
        return Interval(exact.low, exact.high, confidence, method)
    return wald_interval(value, error, n=n, scale="logit", confidence=confidence)
