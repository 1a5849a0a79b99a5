"""Classification metrics of the most probable class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray, ScoredRows, as_scored_rows
from calibrant.metrics.problem import predictions


def confusion_matrix(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> FloatArray:
    """Confusion matrix: number (or weight) of rows by label (row) and predicted class (column).

    The prediction is the most probable class, the first one on ties; for P(positive) that means
    positive if it exceeds 1/2.

    Examples
    --------
    >>> confusion_matrix([0, 1, 1], [0.2, 0.9, 0.4])
    array([[1., 0.], [1., 1.]])
    """
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    return confusion_of(scored, scored.weights)


def accuracy(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> float:
    """Accuracy: share of rows whose most probable class is the label.

    Examples
    --------
    >>> round(accuracy([0, 1, 1], [0.2, 0.9, 0.4]), 4)
    0.6667
    """
    confusion = confusion_matrix(labels, probs, weights=weights, classes=classes)
    return float(np.trace(confusion) / confusion.sum())


def precision(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> FloatArray:
    """Precision of each class: correct share of its predictions; NaN if it is never predicted.

    Examples
    --------
    >>> precision([0, 1, 1], [0.2, 0.9, 0.4])
    array([0.5, 1. ])
    """
    return precision_of(confusion_matrix(labels, probs, weights=weights, classes=classes))


def recall(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> FloatArray:
    """Recall of each class: correctly predicted share of its rows; NaN if it has no rows.

    Examples
    --------
    >>> recall([0, 1, 1], [0.2, 0.9, 0.4])
    array([1. , 0.5])
    """
    return recall_of(confusion_matrix(labels, probs, weights=weights, classes=classes))


def f1(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> FloatArray:
    """F1 of each class, 2 hits / (predicted + actual); NaN if it is neither predicted nor actual.

    Examples
    --------
    >>> f1([0, 1, 1], [0.2, 0.9, 0.4]).round(4)
    array([0.6667, 0.6667])
    """
    return f1_of(confusion_matrix(labels, probs, weights=weights, classes=classes))


def precision_macro(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> float:
    """Mean precision over the classes present in labels or predictions; never predicted counts 0.

    Examples
    --------
    >>> precision_macro([0, 1, 1], [0.2, 0.9, 0.4])
    0.75
    """
    confusion = confusion_matrix(labels, probs, weights=weights, classes=classes)
    return macro(precision_of(confusion), confusion)


def recall_macro(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> float:
    """Mean recall over the classes present in labels or predictions; without rows counts 0.

    Examples
    --------
    >>> recall_macro([0, 1, 1], [0.2, 0.9, 0.4])
    0.75
    """
    confusion = confusion_matrix(labels, probs, weights=weights, classes=classes)
    return macro(recall_of(confusion), confusion)


def f1_macro(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> float:
    """Mean F1 over the classes present in labels or predictions.

    It is the mean of the F1s, not the F1 of the mean precision and recall.

    Examples
    --------
    >>> round(f1_macro([0, 1, 1], [0.2, 0.9, 0.4]), 4)
    0.6667
    """
    confusion = confusion_matrix(labels, probs, weights=weights, classes=classes)
    return macro(f1_of(confusion), confusion)


def matthews(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> float:
    r"""Matthews correlation between label and prediction, for any number of classes.

    .. math:: \frac{c\,s - \sum_k p_k t_k}{\sqrt{(s^2 - \sum_k p_k^2)(s^2 - \sum_k t_k^2)}}

    with c the number of correct rows, s that of all rows, :math:`p_k` and :math:`t_k` the number of
    rows predicted as class k and labelled as class k. It is 0 if all predictions, or all labels,
    are of one class.

    Examples
    --------
    >>> matthews([0, 1, 1], [0.2, 0.9, 0.4])
    0.5

    References
    ----------
    Gorodkin (2004), Computational Biology and Chemistry 28.
    """
    return matthews_of(confusion_matrix(labels, probs, weights=weights, classes=classes))


def precision_of(confusion: FloatArray) -> FloatArray:
    """Return the precision of each class from a confusion matrix."""
    return _ratio(np.diag(confusion), confusion.sum(axis=0))


def recall_of(confusion: FloatArray) -> FloatArray:
    """Return the recall of each class from a confusion matrix."""
    return _ratio(np.diag(confusion), confusion.sum(axis=1))


def f1_of(confusion: FloatArray) -> FloatArray:
    """Return the F1 of each class from a confusion matrix."""
    return _ratio(2 * np.diag(confusion), confusion.sum(axis=0) + confusion.sum(axis=1))


def matthews_of(confusion: FloatArray) -> float:
    """Return the Matthews correlation of a confusion matrix."""
    total, right = confusion.sum(), np.trace(confusion)
    predicted, actual = confusion.sum(axis=0), confusion.sum(axis=1)
    below = (total**2 - predicted @ predicted) * (total**2 - actual @ actual)
    return float((right * total - predicted @ actual) / np.sqrt(below)) if below > 0 else 0.0


def macro(values: FloatArray, confusion: FloatArray) -> float:
    """Return the mean over the present classes, with undefined values as 0."""
    return float(np.nan_to_num(values[present_classes(confusion)], nan=0.0).mean())


def present_classes(confusion: FloatArray) -> NDArray[np.bool_]:
    """Return whether each class is present in the labels or predictions."""
    return np.asarray(confusion.sum(axis=0) + confusion.sum(axis=1) > 0)


def confusion_of(
    scored: ScoredRows, weights: FloatArray | None, predicted: IntArray | None = None
) -> FloatArray:
    """Return the confusion matrix of rows; `predicted` may be passed if it is known."""
    k = len(scored.classes)
    cell = scored.labels * k + (predictions(scored) if predicted is None else predicted)
    return np.bincount(cell, weights, k * k).reshape(k, k).astype(np.float64)


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    out = np.full(len(above), np.nan)
    np.divide(above, below, out=out, where=below > 0)
    return out
