"""Validation of labels, logits, probabilities and weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs.arrays import (
    as_array,
    as_float,
    as_objects,
    column_names,
    first_position,
    format_position,
    join_names,
    missing_value_error,
    name_of,
    order_columns,
    to_python,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Target = Literal["positive", "top-label", "classwise"]

SUM_TOLERANCE = 1e-3
"""Tolerance for the sum of a row of probabilities.

Wide enough for float16 and files rounded to four digits, narrow enough to catch logits, percentages
and a missing column.
"""

LARGEST_LOGIT = 1e100
"""Largest absolute logit; squares of larger ones may overflow float64."""

LARGEST_SEED = 2**32 - 1
"""The largest seed that scikit-learn and NumPy's legacy generators accept."""

LARGEST_WEIGHT = 1e12
"""Largest weight; sums of larger squared weights lose precision in float64."""


@dataclass(frozen=True)
class ScoredRows:
    """Validated labels, probabilities and weights, the common input of all metrics.

    Parameters
    ----------
    labels : int array (n,), indices into `classes`
    probs : float array (n,) holding P(positive), or (n, K)
    weights : float array (n,) or None
    classes : the K class names; of two classes the second is the positive one
    """

    labels: IntArray
    probs: NDArray[np.floating[Any]]
    weights: FloatArray | None
    classes: tuple[Any, ...]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @property
    def binary(self) -> bool:
        """Whether there are two classes."""
        return len(self.classes) == 2

    @property
    def positive(self) -> NDArray[np.floating[Any]]:
        """P(positive) of a binary problem."""
        return self.probs if self.probs.ndim == 1 else self.probs[:, 1]

    @property
    def matrix(self) -> NDArray[np.floating[Any]]:
        """Probabilities of shape (n, K)."""
        if self.probs.ndim == 2:
            return self.probs
        positive = self.probs.astype(np.float64, copy=False)
        return np.column_stack([1.0 - positive, positive])

    def rows(self, mask: NDArray[Any] | slice) -> ScoredRows:
        """Return the rows that `mask` (booleans, indices or a slice) selects."""
        weights = None if self.weights is None else self.weights[mask]
        return ScoredRows(self.labels[mask], self.probs[mask], weights, self.classes)


def as_scored_rows(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> ScoredRows:
    """Validate labels, probabilities and weights together.

    Examples
    --------
    >>> as_scored_rows([0, 1, 1], [0.2, 0.9, 0.6]).classes
    (0, 1)
    >>> as_scored_rows(["no", "yes"], [0.2, 0.9], classes=["no", "yes"]).labels
    array([0, 1])
    """
    checked, class_names = order_columns(as_probs(probs), probs, labels=labels, classes=classes)
    n_classes = 2 if checked.ndim == 1 else checked.shape[1]
    codes, names = as_labels(labels, n_classes=n_classes, classes=class_names)
    if len(codes) != len(checked):
        raise InputError(
            f"labels and probs must have the same length, got {len(codes)} labels and "
            f"{len(checked)} rows of probabilities: pass one label per row."
        )
    scored = ScoredRows(codes, checked, as_weights(weights, len(codes)), names)
    if scored.weights is not None and not scored.weights.all():
        return scored.rows(scored.weights > 0)  # rows of weight 0 are dropped
    return scored


def as_probs(probs: Any, *, name: str = "probs") -> NDArray[np.floating[Any]]:
    """Validate probabilities: finite, within [0, 1], rows of a matrix summing to 1.

    The dtype is preserved (float32 input is not copied); later sums are computed in float64.
    """
    _refuse_other_kind(probs, "logit", name)
    array = as_float(probs, name)
    if array.ndim not in (1, 2):
        raise InputError(
            f"{name} must have shape (n,) or (n, K), got {array.shape}: "
            "pass P(positive) for each row, or one column per class."
        )
    if array.ndim == 2 and array.shape[1] < 2:
        raise InputError(
            f"{name} of shape {array.shape} has one column: for a binary problem pass P(positive) "
            "of shape (n,), otherwise one column per class."
        )
    if array.shape[0] == 0:
        raise InputError(f"{name} is empty: at least one row is needed.")
    # One pass each, fast even for millions of rows; the bad row is located only on error.
    if not (array.min() >= 0.0 and array.max() <= 1.0):
        _raise_not_probability(array, name)
    if array.ndim == 2:
        sums = np.einsum("ij->i", array)  # faster than sum(axis=1), single-threaded
        if sums.min() < 1.0 - SUM_TOLERANCE or sums.max() > 1.0 + SUM_TOLERANCE:
            row = int(np.argmax(np.abs(sums - 1.0) > SUM_TOLERANCE))
            raise InputError(
                f"{name} row {row} sums to {float(sums[row]):.6g}, but each row must sum to 1 "
                f"(within {SUM_TOLERANCE:g}): convert logits to probabilities first, or look for a "
                "missing class column."
            )
    return array


def as_logits(logits: Any, *, name: str = "logits") -> NDArray[np.floating[Any]]:
    """Validate logits: finite numbers of shape (n,) for the positive class, or (n, K).

    The dtype is preserved. Columns named `prob...` are refused; the kind is never guessed from the
    values.
    """
    _refuse_other_kind(logits, "prob", name)
    array = as_float(logits, name)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] < 2):
        raise InputError(f"{name} must have shape (n,) or (n, K) with K >= 2, got {array.shape}.")
    if array.shape[0] == 0:
        raise InputError(f"{name} is empty: at least one row is needed.")
    if not (float(array.min()) > -LARGEST_LOGIT and float(array.max()) < LARGEST_LOGIT):
        index = first_position(~(np.abs(array.astype(np.float64)) < LARGEST_LOGIT))
        rule = (
            f"lie between {-LARGEST_LOGIT:g} and {LARGEST_LOGIT:g}"
            if np.isfinite(array[index])
            else "be finite"
        )
        value = f"{array[index]} in {format_position(index)}"
        raise InputError(f"{name} must {rule}, got {value}: drop or fix that row.")
    return array


def as_labels(
    labels: Any, *, n_classes: int, classes: Sequence[Any] | None = None, name: str = "labels"
) -> tuple[IntArray, tuple[Any, ...]]:
    """Convert labels to class indices 0..K-1, and return the class names with them."""
    array = as_array(labels, name)
    if array.ndim != 1:
        raise InputError(
            f"{name} must have shape (n,), got {array.shape}: pass one class per row, "
            "not one-hot rows."
        )
    if array.shape[0] == 0:
        raise InputError(f"{name} is empty: at least one row is needed.")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise missing_value_error(name, np.isnan(array))
    if classes is not None:
        return _find_classes(array, tuple(to_python(c) for c in classes), n_classes, name)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name} are names (first: {to_python(array[0])!r}): pass classes=[...] with the name "
            "of each column of the probabilities; for binary P(positive) the second name is the "
            "positive class."
        )
    return _check_class_indices(array, n_classes, name), tuple(range(n_classes))


def as_seed(seed: Any, *, name: str = "seed") -> int:
    """Validate a seed: an integer that every random generator in use accepts.

    Examples
    --------
    >>> as_seed(2**32)
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: seed must be a whole number of at most 4294967295, got 4294967296.
    """
    if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"{name} must be a whole number of at least 0, got {seed!r}.")
    number = int(seed)
    if number > LARGEST_SEED:
        raise InputError(f"{name} must be a whole number of at most {LARGEST_SEED}, got {number}.")
    return number


def as_weights(weights: Any, n: int, *, name: str = "weights") -> FloatArray | None:
    """Validate weights: n finite non-negative numbers, not all zero."""
    if weights is None:
        return None
    array = as_float(weights, name).astype(np.float64, copy=False)
    if array.shape != (n,):
        raise InputError(f"{name} must have shape ({n},), got {array.shape}.")
    bad = ~((array >= 0) & (array <= LARGEST_WEIGHT))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{name} must lie between 0 and {LARGEST_WEIGHT:g}, got {array[row]} in row {row}: "
            "a weight is the inverse of the probability that the row was sampled."
        )
    if not array.any():
        raise InputError(f"{name} are all zero: at least one row needs a positive weight.")
    return array


def as_groups(groups: Any, n: int, *, name: str = "groups") -> NDArray[np.str_]:
    """Convert n values of any type to group names, as for the group column of a score file.

    Examples
    --------
    >>> as_groups([1.0, None, 2.0], 3)
    array(['1', '(missing)', '2'], dtype='<U9')
    """
    array = as_objects(groups)
    if array.shape != (n,):
        raise InputError(f"{name} must have shape ({n},), got {array.shape}: one name per row.")
    if array.dtype.kind == "O":
        return np.array([name_of(value) for value in array])
    values, inverse = np.unique(array, return_inverse=True)
    return np.array([name_of(value) for value in values])[inverse.reshape(-1)]


def check_two_classes(rows: IntArray | FloatArray, classes: tuple[Any, ...]) -> None:
    """Refuse data with a single class; `rows` counts the labels of each class."""
    present = np.flatnonzero(rows)
    if len(present) == 1:
        n = int(rows.sum())
        labels = "the only label is" if n == 1 else f"all {n:,} labels are"
        raise InputError(
            f"{labels} {classes[present[0]]!r}, but rows of at least two classes are needed to "
            "evaluate a classifier: add rows of another class (single metrics, such as "
            "calibrant.metrics.ece, accept one class)."
        )


def resolve_target(target: str | None, n_classes: int) -> Target:
    """Return the calibration target: by default `positive` for two classes, else `top-label`."""
    if target is None:
        return "positive" if n_classes == 2 else "top-label"
    if target not in get_args(Target):
        raise InputError(f"target must be 'positive', 'top-label' or 'classwise', got {target!r}.")
    if target == "positive" and n_classes != 2:
        raise InputError(
            f"target 'positive' needs two classes, got {n_classes}: use 'top-label' or 'classwise'."
        )
    return cast(Target, target)


def resolve_single_target(target: str | None, n_classes: int) -> Target:
    """Return the calibration target, refusing `classwise`."""
    resolved = resolve_target(target, n_classes)
    if resolved == "classwise":
        raise InputError(
            "target must be 'positive' or 'top-label' here, got 'classwise': the class-wise "
            "metrics have their own names (ece_classwise, ace)."
        )
    return resolved


def _refuse_other_kind(values: Any, kind: str, name: str) -> None:
    """Refuse a column or table whose names say that it holds the other kind of score."""
    names = column_names(values) or (getattr(values, "name", None),)
    other_kind = [c for c in names if isinstance(c, str) and re.match(f"{kind}s?(_|$)", c)]
    if other_kind:
        remedy = {"prob": "logits_from_probs", "logit": "probs_from_logits"}[kind]
        raise InputError(
            f"{name} has a column {other_kind[0]!r}, whose name says that it holds {kind}s: "
            f"convert it with calibrant.convert.{remedy} first."
        )


def _find_classes(
    array: NDArray[Any], classes: tuple[Any, ...], n_classes: int, name: str
) -> tuple[IntArray, tuple[Any, ...]]:
    """Return the index of each label among the class names."""
    if len(set(classes)) != len(classes):
        duplicate = next(c for i, c in enumerate(classes) if c in classes[:i])
        raise InputError(f"classes must differ, got {duplicate!r} twice.")
    if len(classes) != n_classes:
        raise InputError(
            f"classes must have one name for each of the {n_classes} columns, got {len(classes)}."
        )
    position = {c: i for i, c in enumerate(classes)}
    values, inverse = np.unique(array, return_inverse=True)
    codes = np.array([position.get(to_python(v), -1) for v in values], dtype=np.int64)[inverse]
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InputError(
            f"{name} row {row} is {to_python(array[row])!r}, which is not among the classes "
            f"{join_names(classes)}: correct the label or add its column."
        )
    return codes.reshape(-1), classes


def _check_class_indices(array: NDArray[Any], n_classes: int, name: str) -> IntArray:
    """Check that labels are integers 0..K-1."""
    if array.dtype.kind == "f":
        bad = ~(np.isfinite(array) & (array == np.floor(array)))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(
                f"{name} row {row} is {array[row]}: labels must be whole numbers 0..{n_classes - 1}"
                ", booleans or, with classes=[...], names."
            )
    if array.dtype.kind != "b" and not (array.min() >= 0 and array.max() < n_classes):
        row = int(np.argmax((array < 0) | (array >= n_classes)))
        raise InputError(
            f"{name} row {row} is {array[row]}, but labels must be whole numbers 0..{n_classes - 1}"
            f" for {n_classes} classes: pass classes=[...] if they are names."
        )
    return array.astype(np.int64, copy=False)


def _raise_not_probability(array: NDArray[Any], name: str) -> None:
    """Raise an error that names the first entry that is not a probability."""
    index = first_position(~((array >= 0.0) & (array <= 1.0)))
    value = float(array[index])
    remedy = (
        "drop or fix that row"
        if not np.isfinite(value)
        else "convert logits or percentages to probabilities first"
    )
    raise InputError(
        f"{name} must lie in [0, 1], got {value:g} in {format_position(index)}: {remedy}."
    )
