"""Validated input of a calibrator's `fit`."""

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
from calibrant.inputs.arrays import order_columns

Array = NDArray[np.floating[Any]]

_MIN_SUSPECT_ROWS = 20  # fewer rows may be a handmade example
_ROUNDING = 1e-3  # tolerance of a row sum


@dataclass(frozen=True)
class CalibrationRows:
    """Validated logits, labels and weights."""

    logits: Array  # (n,) log-odds of the second class, or (n, K); dtype as passed
    labels: IntArray  # (n,) indices into `classes`
    weights: FloatArray | None  # (n,) positive, or None
    classes: tuple[Any, ...]  # the K class names

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
        """Sum of the weights, or the number of rows without weights."""
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
        """Logits in float64, (n,) log-odds where there are two classes."""
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

    def take(self, rows: NDArray[Any] | slice) -> CalibrationRows:
        """Return the rows selected by a mask, indices or a slice."""
        weights = None if self.weights is None else self.weights[rows]
        return CalibrationRows(self.logits[rows], self.labels[rows], weights, self.classes)


def as_calibration_rows(
    logits: Any, labels: Any, weights: Any = None, classes: Sequence[Any] | None = None
) -> CalibrationRows:
    """Validate logits, labels and weights together; rows of weight 0 are dropped."""
    array, named = order_columns(
        as_logits(logits), logits, labels=labels, classes=classes, kind="logit", name="logits"
    )
    _warn_if_probs(array)
    k = 2 if array.ndim == 1 else array.shape[1]
    named = class_names(labels, k, named)
    codes, names = as_labels(labels, n_classes=k, classes=named)
    if len(codes) != len(array):
        raise InputError(
            f"labels and logits must have the same length, got {len(codes)} labels and "
            f"{len(array)} rows of logits: pass one label per row."
        )
    rows = CalibrationRows(array, codes, as_weights(weights, len(codes)), names)
    if rows.weights is not None and not rows.weights.all():
        return rows.take(rows.weights > 0)
    return rows


def _warn_if_probs(logits: Array) -> None:
    """Warn if every row lies in [0, 1] and sums to 1: these are probably not logits."""
    if logits.ndim == 1 or len(logits) < _MIN_SUSPECT_ROWS or np.isin(logits[0], (0.0, 1.0)).all():
        return
    for block in (logits[:1], logits):  # the first row nearly always decides
        inside = block.min() >= 0.0 and block.max() <= 1.0
        if not inside or np.abs(block.sum(axis=1, dtype=np.float64) - 1.0).max() > _ROUNDING:
            return
    warnings.warn(
        "every row of logits lies between 0 and 1 and sums to 1, as probabilities do: if they are "
        "probabilities, pass calibrant.convert.logits_from_probs(probs).",
        stacklevel=4,
    )


def class_names(labels: Any, k: int, classes: Sequence[Any] | None) -> Sequence[Any] | None:
    """Return the column names, from `classes` or from labels that name all K classes.

    Without `classes`, columns are in sorted order of the class names, as in scikit-learn. This
    requires that all K names occur; otherwise the missing column is unknown and `as_labels` asks
    for `classes`.
    """
    if classes is not None:
        return classes
    try:
        array = np.asarray(labels.to_pylist() if hasattr(labels, "to_pylist") else labels)
    except (TypeError, ValueError):
        return None  # `as_labels` reports the problem
    if array.dtype.kind not in "OUT" or array.ndim != 1:
        return None
    names = {str(v) for v in array.tolist() if isinstance(v, str)}
    return sorted(names) if len(names) == k else None


def two_columns(logits: FloatArray) -> FloatArray:
    """Convert log-odds (n,) to two columns of logits; return (n, K) unchanged."""
    if logits.ndim == 2:
        return logits
    return np.column_stack([-0.5 * logits, 0.5 * logits])
