"""The rows that a calibrator learns from, after every check."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.convert import log_odds_from_logits, log_probs_from_logits
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray, as_labels, as_logits, as_weights
from calibrant.inputs.class_columns import order_columns

__all__ = ["Array", "Rows", "calibration_rows", "class_names", "two_columns"]

Array = NDArray[np.floating[Any]]

_TELLING = 20  # rows; fewer may be an example made by hand
_ROUNDED = 1e-3  # what rounding of probabilities leaves


@dataclass(frozen=True)
class Rows:
    """Logits and labels that passed every check.

    Parameters
    ----------
    logits : (n,) log-odds of the second class, or (n, K); the dtype is the user's
    labels : (n,) positions into `classes`
    weights : (n,) positive, or None
    classes : the K class names
    """

    logits: Array
    labels: IntArray
    weights: FloatArray | None
    classes: tuple[Any, ...]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @property
    def k(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def total(self) -> float:
        """Sum of the weights: the number of rows that repetition would make."""
        return float(self.n) if self.weights is None else float(self.weights.sum())

    @property
    def mass(self) -> FloatArray:
        """The weight of each row, scaled to sum to 1."""
        if self.weights is None:
            return np.full(self.n, 1.0 / self.n)
        return np.asarray(self.weights / self.weights.sum())

    @property
    def counts(self) -> FloatArray:
        """Sum of the weights of each class."""
        return np.bincount(self.labels, weights=self.weights, minlength=self.k).astype(np.float64)

    @property
    def canonical(self) -> FloatArray:
        """Logits in float64, (n,) log-odds where there are two classes: what methods map."""
        wide = self.logits.astype(np.float64, copy=False)
        return np.asarray(wide[:, 1] - wide[:, 0]) if wide.ndim == 2 and self.k == 2 else wide

    @property
    def log_probs(self) -> FloatArray:
        """Log-probabilities (n, K) of the model, in float64."""
        return log_probs_from_logits(two_columns(self.logits.astype(np.float64, copy=False)))

    @property
    def log_odds(self) -> FloatArray:
        """Log-odds (n,) of the second of two classes, or (n, K) of each class against the rest."""
        return log_odds_from_logits(self.logits.astype(np.float64, copy=False))

    def take(self, rows: NDArray[Any] | slice) -> Rows:
        """Return the rows that `rows` (booleans, positions or a slice) names."""
        weights = None if self.weights is None else self.weights[rows]
        return Rows(self.logits[rows], self.labels[rows], weights, self.classes)


def calibration_rows(
    logits: Any, labels: Any, weights: Any = None, classes: Sequence[Any] | None = None
) -> Rows:
    """Check logits, labels and weights together; rows of weight 0 are rows that are not there."""
    checked, named = order_columns(
        as_logits(logits), logits, labels=labels, classes=classes, kind="logit", name="logits"
    )
    _suspect_probs(checked)
    k = 2 if checked.ndim == 1 else checked.shape[1]
    named = class_names(labels, k, named)
    codes, names = as_labels(labels, n_classes=k, classes=named)
    if len(codes) != len(checked):
        raise InputError(
            f"labels and logits must have the same length, got {len(codes)} labels and "
            f"{len(checked)} rows of logits: give one label for each row."
        )
    rows = Rows(checked, codes, as_weights(weights, len(codes)), names)
    if rows.weights is not None and not rows.weights.all():
        return rows.take(rows.weights > 0)
    return rows


def _suspect_probs(logits: Array) -> None:
    """Warn of rows that all lie between 0 and 1 and sum to 1: logits would not, by chance."""
    if logits.ndim == 1 or len(logits) < _TELLING or np.isin(logits[0], (0.0, 1.0)).all():
        return
    for some in (logits[:1], logits):  # the first row tells nearly always
        inside = some.min() >= 0.0 and some.max() <= 1.0
        if not inside or np.abs(some.sum(axis=1, dtype=np.float64) - 1.0).max() > _ROUNDED:
            return
    warnings.warn(
        "every row of logits lies between 0 and 1 and sums to 1, as probabilities do: if they are "
        "some, give calibrant.convert.logits_from_probs(probs) instead.",
        stacklevel=4,
    )


def class_names(labels: Any, k: int, classes: Sequence[Any] | None) -> Sequence[Any] | None:
    """Return the names of the columns, where `classes` are known or the labels name them all.

    Without `classes` names follow scikit-learn's rule: columns stand in sorted order of the class
    names. It holds only if all K names occur; otherwise nothing says which column is missing, and
    `as_labels` asks.
    """
    if classes is not None:
        return classes
    try:
        array = np.asarray(labels.to_pylist() if hasattr(labels, "to_pylist") else labels)
    except (TypeError, ValueError):
        return None  # `as_labels` says what is wrong
    if array.dtype.kind not in "OUT" or array.ndim != 1:
        return None
    found = {str(v) for v in array.tolist() if isinstance(v, str)}
    return sorted(found) if len(found) == k else None


def two_columns(logits: FloatArray) -> FloatArray:
    """Write log-odds (n,) as two columns of logits; leave (n, K) alone."""
    if logits.ndim == 2:
        return logits
    return np.column_stack([-0.5 * logits, 0.5 * logits])
