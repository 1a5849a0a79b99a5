"""The only input checks: what the user hands over becomes numpy, or one helpful sentence."""

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
    first_place,
    listed,
    plain,
    told_gap,
    told_place,
)
from calibrant.inputs.class_columns import column_names, in_class_order
from calibrant.inputs.value_names import name_of

__all__ = [
    "LARGEST_LOGIT",
    "LARGEST_SEED",
    "SUM_TOLERANCE",
    "Scored",
    "as_groups",
    "as_labels",
    "as_logits",
    "as_probs",
    "as_scored",
    "as_seed",
    "as_weights",
    "check_two_classes",
    "one_target",
    "resolve_target",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Target = Literal["positive", "top-label", "classwise"]

SUM_TOLERANCE = 1e-3
"""How far a row of probabilities may be from summing to 1.

Wide enough for float16 and for files rounded to four digits, narrow enough to catch logits,
percentages and a missing column.
"""

LARGEST_LOGIT = 1e100
"""Beyond this, squares of logits are no numbers in float64."""

LARGEST_SEED = 2**32 - 1
"""The largest that scikit-learn and NumPy's older generators take."""

LARGEST_WEIGHT = 1e12
"""Beyond this, sums of squared weights lose their meaning in float64."""


@dataclass(frozen=True)
class Scored:
    """Labels and probabilities that passed every check, in one form for all metrics.

    Parameters
    ----------
    labels : int array (n,), positions into `classes`
    probs : float array (n,) holding P(positive), or (n, K)
    weights : float array (n,) or None
    classes : the K class names; in the binary form the second is the positive one
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
        """The probabilities as (n, K)."""
        if self.probs.ndim == 2:
            return self.probs
        positive = self.probs.astype(np.float64, copy=False)
        return np.column_stack([1.0 - positive, positive])

    def rows(self, mask: NDArray[Any] | slice) -> Scored:
        """Return the rows that `mask` (booleans, positions or a slice) names."""
        weights = None if self.weights is None else self.weights[mask]
        return Scored(self.labels[mask], self.probs[mask], weights, self.classes)


def as_scored(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> Scored:
    """Check labels, probabilities and weights together.

    Examples
    --------
    >>> as_scored([0, 1, 1], [0.2, 0.9, 0.6]).classes
    (0, 1)
    >>> as_scored(["no", "yes"], [0.2, 0.9], classes=["no", "yes"]).labels
    array([0, 1])
    """
    checked, found = in_class_order(as_probs(probs), probs, labels=labels, classes=classes)
    n_classes = 2 if checked.ndim == 1 else checked.shape[1]
    codes, names = as_labels(labels, n_classes=n_classes, classes=found)
    if len(codes) != len(checked):
        raise InputError(
            f"labels and probs must have the same length, got {len(codes)} labels and "
            f"{len(checked)} rows of probabilities: give one label for each row."
        )
    scored = Scored(codes, checked, as_weights(weights, len(codes)), names)
    if scored.weights is not None and not scored.weights.all():
        return scored.rows(scored.weights > 0)  # a row of weight 0 is a row that is not there
    return scored


def as_probs(probs: Any, *, name: str = "probs") -> NDArray[np.floating[Any]]:
    """Check probabilities: finite, within [0, 1], rows of a matrix summing to 1.

    The dtype is kept (float32 stays float32, so that large inputs are not copied); every sum
    made from them later is taken in float64.
    """
    _refuse_named(probs, "logit", name)
    array = as_float(probs, name)
    if array.ndim not in (1, 2):
        raise InputError(
            f"{name} must have shape (n,) or (n, K), got {array.shape}: "
            "give P(positive) for each row, or one column for each class."
        )
    if array.ndim == 2 and array.shape[1] < 2:
        raise InputError(
            f"{name} of shape {array.shape} has one column: for a binary problem give shape (n,) "
            "with P(positive), otherwise one column for each class."
        )
    if array.shape[0] == 0:
        raise InputError(f"{name} is empty: at least one row is needed.")
    # One pass each, fast even for millions of rows; which row is at fault is looked up only then.
    if not (array.min() >= 0.0 and array.max() <= 1.0):
        _blame_value(array, name)
    if array.ndim == 2:
        sums = np.einsum("ij->i", array)  # faster than sum(axis=1), and wakes no other threads
        if sums.min() < 1.0 - SUM_TOLERANCE or sums.max() > 1.0 + SUM_TOLERANCE:
            row = int(np.argmax(np.abs(sums - 1.0) > SUM_TOLERANCE))
            raise InputError(
                f"{name} row {row} sums to {float(sums[row]):.6g}, but each row must sum to 1 "
                f"(within {SUM_TOLERANCE:g}): turn logits into probabilities first, or check for a "
                "missing class column."
            )
    return array


def as_logits(logits: Any, *, name: str = "logits") -> NDArray[np.floating[Any]]:
    """Check logits: finite numbers of shape (n,) for the positive class, or (n, K).

    The dtype is kept. Columns called `prob...` are refused by name; values are never guessed from.
    """
    _refuse_named(logits, "prob", name)
    array = as_float(logits, name)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] < 2):
        raise InputError(f"{name} must have shape (n,) or (n, K) with K >= 2, got {array.shape}.")
    if array.shape[0] == 0:
        raise InputError(f"{name} is empty: at least one row is needed.")
    if not (float(array.min()) > -LARGEST_LOGIT and float(array.max()) < LARGEST_LOGIT):
        where = first_place(~(np.abs(array.astype(np.float64)) < LARGEST_LOGIT))
        rule = (
            f"lie between {-LARGEST_LOGIT:g} and {LARGEST_LOGIT:g}"
            if np.isfinite(array[where])
            else "be finite"
        )
        found = f"{array[where]} in {told_place(where)}"
        raise InputError(f"{name} must {rule}, got {found}: drop or repair that row.")
    return array


def as_labels(
    labels: Any, *, n_classes: int, classes: Sequence[Any] | None = None, name: str = "labels"
) -> tuple[IntArray, tuple[Any, ...]]:
    """Turn labels into positions 0..K-1 and the class names behind them."""
    array = as_array(labels, name)
    if array.ndim != 1:
        raise InputError(
            f"{name} must have shape (n,), got {array.shape}: give one class for each row, "
            "not one-hot rows."
        )
    if array.shape[0] == 0:
        raise InputError(f"{name} is empty: at least one row is needed.")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise told_gap(name, np.isnan(array))
    if classes is not None:
        return _look_up(array, tuple(plain(c) for c in classes), n_classes, name)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name} are names (first: {plain(array[0])!r}): pass classes=[...] to say which "
            "column of the probabilities belongs to which name; for binary P(positive) the second "
            "name is the positive class."
        )
    return _whole_numbers(array, n_classes, name), tuple(range(n_classes))


def as_seed(seed: Any, *, name: str = "seed") -> int:
    """Return the seed of a training or a study, which everything that is drawn there can take.

    Examples
    --------
    >>> as_seed(2**32)
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: seed must be a whole number of at most 4294967295, got 4294967296.
    """
    if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"{name} must be a whole number of at least 0, got {seed!r}.")
    found = int(seed)
    if found > LARGEST_SEED:
        raise InputError(f"{name} must be a whole number of at most {LARGEST_SEED}, got {found}.")
    return found


def as_weights(weights: Any, n: int, *, name: str = "weights") -> FloatArray | None:
    """Check weights: n finite numbers, none negative, not all zero."""
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
            "a weight is the inverse of the chance that the row was picked."
        )
    if not array.any():
        raise InputError(f"{name} are all zero: at least one row must count.")
    return array


def as_groups(groups: Any, n: int, *, name: str = "groups") -> NDArray[np.str_]:
    """Turn n values of any type into names, as a score file's group column is read.

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
    """Refuse data in which one class alone occurs; `rows` counts the labels of each class."""
    present = np.flatnonzero(rows)
    if len(present) == 1:
        n = int(rows.sum())
        found = "the only label is" if n == 1 else f"all {n:,} labels are"
        raise InputError(
            f"{found} {classes[present[0]]!r}, but rows of at least two classes are needed to "
            "judge a classifier: add rows of another class (single metrics, such as "
            "calibrant.metrics.ece, take what there is)."
        )


def resolve_target(target: str | None, n_classes: int) -> Target:
    """Name what is being calibrated: by default `positive` for two classes, else `top-label`."""
    if target is None:
        return "positive" if n_classes == 2 else "top-label"
    if target not in get_args(Target):
        raise InputError(f"target must be 'positive', 'top-label' or 'classwise', got {target!r}.")
    if target == "positive" and n_classes != 2:
        raise InputError(
            f"target 'positive' needs two classes, got {n_classes}: use 'top-label' or 'classwise'."
        )
    return cast(Target, target)


def one_target(target: str | None, n_classes: int) -> Target:
    """Name the one problem that is judged: `positive` or `top-label`, never all classes."""
    what = resolve_target(target, n_classes)
    if what == "classwise":
        raise InputError(
            "target must be 'positive' or 'top-label' here, got 'classwise': the class-wise "
            "figures have names of their own (ece_classwise, ace)."
        )
    return what


def _refuse_named(values: Any, kind: str, name: str) -> None:
    """Refuse a column or table that says by its own names that it holds something else."""
    names = column_names(values) or (getattr(values, "name", None),)
    found = [c for c in names if isinstance(c, str) and re.match(f"{kind}s?(_|$)", c)]
    if found:
        remedy = {"prob": "logits_from_probs", "logit": "probs_from_logits"}[kind]
        raise InputError(
            f"{name} has a column {found[0]!r}, which holds {kind}s by its name: "
            f"take calibrant.convert.{remedy} of it first."
        )


def _look_up(
    array: NDArray[Any], classes: tuple[Any, ...], n_classes: int, name: str
) -> tuple[IntArray, tuple[Any, ...]]:
    """Find each label among the class names."""
    if len(set(classes)) != len(classes):
        twice = next(c for i, c in enumerate(classes) if c in classes[:i])
        raise InputError(f"classes must differ, got {twice!r} twice.")
    if len(classes) != n_classes:
        raise InputError(
            f"classes must have one name for each of the {n_classes} columns, got {len(classes)}."
        )
    position = {c: i for i, c in enumerate(classes)}
    values, inverse = np.unique(array, return_inverse=True)
    codes = np.array([position.get(plain(v), -1) for v in values], dtype=np.int64)[inverse]
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InputError(
            f"{name} row {row} is {plain(array[row])!r}, which is not among the classes "
            f"{listed(classes)}: correct the label or add its column."
        )
    return codes.reshape(-1), classes


def _whole_numbers(array: NDArray[Any], n_classes: int, name: str) -> IntArray:
    """Check that labels are whole numbers 0..K-1."""
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


def _blame_value(array: NDArray[Any], name: str) -> None:
    """Name the first entry that is not a probability."""
    where = first_place(~((array >= 0.0) & (array <= 1.0)))
    value = float(array[where])
    remedy = (
        "drop or repair that row"
        if not np.isfinite(value)
        else "turn logits or percentages into probabilities first"
    )
    raise InputError(f"{name} must lie in [0, 1], got {value:g} in {told_place(where)}: {remedy}.")
