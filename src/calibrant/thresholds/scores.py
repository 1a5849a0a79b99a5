"""Row scores: the number of each row that a threshold is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.convert import log_odds_from_logits
from calibrant.errors import InputError
from calibrant.inputs import IntArray, as_labels, as_logits, as_probs
from calibrant.inputs.arrays import Kind, order_columns

On = Literal["probs", "logits"]
Scores = NDArray[np.floating[Any]]


def as_scores(
    probs: Any, logits: Any, classes: Sequence[Any] | None = None, *, labels: Any = None
) -> tuple[Scores, On, Sequence[Any] | None]:
    """Check `probs` or `logits`, and return the array and its kind.

    Columns named after the classes are put into the order of `classes`; if that is None, `labels`
    and the columns may name the classes, which are returned last.
    """
    if (probs is None) == (logits is None):
        raise InputError("give either probs or logits (preferably logits).")
    on: On = "probs" if logits is None else "logits"
    kind: Kind = "prob" if logits is None else "logit"
    array = as_probs(probs) if on == "probs" else as_logits(logits)
    ordered, names = order_columns(
        array,
        probs if logits is None else logits,
        labels=labels,
        classes=classes,
        kind=kind,
        name=on,
    )
    return ordered, on, names


def labelled_scores(
    labels: Any, probs: Any, logits: Any, classes: Sequence[Any] | None
) -> tuple[Scores, On, IntArray, tuple[Any, ...]]:
    """Check scores and labels together; return the scores, their kind, codes and class names."""
    array, on, names = as_scores(probs, logits, classes, labels=labels)
    k = 2 if array.ndim == 1 else array.shape[1]
    return array, on, *as_labels(labels, n_classes=k, classes=names)


def row_scores(array: Scores, *, on: On, of: Any, classes: Sequence[Any]) -> Scores:
    """Return the score of each row: of class `of`, or of the predicted class where `of` is None.

    Probabilities are returned unchanged. Logits become log-odds against the rest, which keep rows
    distinct whose probabilities round to 1.
    """
    shape = array.shape
    if on == "logits":
        array = log_odds_from_logits(np.ascontiguousarray(array, dtype=np.float64))
    columns = 2 if len(shape) == 1 else shape[1]
    if columns != len(classes):
        raise InputError(
            f"there are {len(classes)} classes, but the scores have shape {shape}: give one column "
            "for each class (for two classes, a single column of the second is enough)."
        )
    if of is None:
        return _top_label_scores(array, on)
    column = list(classes).index(of)
    if array.ndim == 2:
        return np.asarray(array[:, column])
    if column == 1:
        return array
    return np.asarray(-array if on == "logits" else 1 - array)


def predict_classes(array: Scores, on: On) -> IntArray:
    """Return the index of the most probable class of each row."""
    if array.ndim == 2:
        return np.asarray(array.argmax(axis=1))
    return np.asarray(array > (0.5 if on == "probs" else 0.0)).astype(np.int64)


def _top_label_scores(array: Scores, on: On) -> Scores:
    if array.ndim == 2:
        return np.asarray(array.max(axis=1))
    return np.asarray(np.abs(array) if on == "logits" else np.maximum(array, 1 - array))
