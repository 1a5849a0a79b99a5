"""Encode the user's labels as integers, with their class names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from calibrant.data.encoders.table_columns import is_missing
from calibrant.errors import InputError
from calibrant.inputs import IntArray

_LARGEST = 2.0**53
"""Above it, different integers may be the same float."""


def read_classes(y: Any, *, n: int) -> tuple[IntArray, NDArray[Any]]:
    """Return the code of each label, and the sorted classes.

    Examples
    --------
    >>> from calibrant.fitting.class_labels import read_classes
    >>> codes, classes = read_classes(["spam", "ham", "spam"], n=3)
    >>> codes.tolist(), classes.tolist()
    ([1, 0, 1], ['ham', 'spam'])
    """
    labels = _read_labels(y, n, "y")
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise _mixed_types_error({type(label).__name__ for label in labels}, "y") from None
    if len(classes) < 2:
        raise InputError(
            f"y holds only one class, {classes.tolist()[0]!r}, in {n} rows: give rows of at least "
            "two classes."
        )
    return codes.astype(np.int64).reshape(-1), classes


def encode_labels(y: Any, classes: NDArray[Any], *, n: int) -> IntArray:
    """Return the code of each steer label among the classes of the train rows."""
    labels = _read_labels(y, n, "steer y").tolist()
    code_of = {name: i for i, name in enumerate(classes.tolist())}
    for row, label in enumerate(labels):
        if label not in code_of:
            raise InputError(
                f"steer y row {row} is {label!r}, a class that the train rows do not have "
                f"({_list_classes(classes)}): add train rows of it, or leave the row out."
            )
    return np.array([code_of[label] for label in labels], dtype=np.int64)


def _read_labels(y: Any, n: int, name: str) -> NDArray[Any]:
    """Return labels as a one-dimensional array without missing values."""
    if y is None:
        raise InputError(
            f"fit requires y to be passed, but the target y is None: give {name}, one label for "
            "each row."
        )
    array = _as_array(y, name)
    if (array.ndim == 2 and array.shape[1] != 1) or array.ndim > 2 or array.ndim == 0:
        raise InputError(
            f"{name} must hold one label for each row, got shape {array.shape}: give class names "
            "or numbers, not one-hot rows."
        )
    labels: NDArray[Any] = column_or_1d(array, warn=True)
    if len(labels) != n:
        raise InputError(
            f"{name} must hold one label for each row, got {len(labels)} labels for {n} rows."
        )
    if labels.dtype.kind == "f":
        _check_whole(labels, name)
    return labels


def _as_array(y: Any, name: str) -> NDArray[Any]:
    """Return labels as an array without turning booleans into numbers or numbers into text."""
    if hasattr(y, "to_pylist"):  # Arrow
        y = y.to_pylist()
    elif hasattr(y, "detach"):  # a torch tensor
        y = y.detach().cpu().numpy()
    array = np.asarray(y)
    kind, mixable = array.dtype.kind, isinstance(y, list | tuple)
    if kind == "O" or (kind in "US" and mixable):
        return _unify_types(np.asarray(y, dtype=object), name)
    if kind in "iuf" and mixable:
        _refuse_booleans(np.asarray(y, dtype=object).reshape(-1), name)
    return array


def _unify_types(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Return object labels with their common type; a missing label raises `InputError`."""
    flat = array.reshape(-1)
    for row, label in enumerate(flat):
        if is_missing(label):
            raise InputError(f"{name} row {row} is missing: drop that row, or find its label.")
    if all(isinstance(label, str) for label in flat):
        return array
    if all(isinstance(label, int | float | np.number | np.bool_) for label in flat):
        if not all(isinstance(label, bool | np.bool_) for label in flat):
            _refuse_booleans(flat, name)
        return np.array(array.tolist())
    return array


def _refuse_booleans(numbers: NDArray[Any], name: str) -> None:
    """Raise `InputError` for booleans among numbers: True would become the class 1."""
    if any(isinstance(label, bool | np.bool_) for label in numbers):
        raise _mixed_types_error({type(label).__name__ for label in numbers}, name)


def _mixed_types_error(kinds: set[str], name: str) -> InputError:
    return InputError(f"{name} mixes {' and '.join(sorted(kinds))}: name all classes by one type.")


def _check_whole(labels: NDArray[Any], name: str) -> None:
    finite = np.isfinite(labels)
    if not finite.all():
        row = int(np.argmin(finite))
        problem = "missing" if np.isnan(labels[row]) else f"{labels[row]}, which is not a class"
        raise InputError(f"{name} row {row} is {problem}: drop that row, or find its label.")
    huge = np.abs(labels) > _LARGEST
    if huge.any():
        row = int(np.argmax(huge))
        raise InputError(
            f"{name} row {row} is {labels[row]:g}, too large for integers to stay distinct: name "
            "the classes by text."
        )
    whole = labels == np.floor(labels)
    if not whole.all():
        row = int(np.argmin(whole))
        raise InputError(
            f"Unknown label type: {name} row {row} is {labels[row]:g}, which is continuous and not "
            "a class: cut the target into classes first, as calibrant.data.TargetCut does."
        )


def _list_classes(classes: NDArray[Any], most: int = 8) -> str:
    shown = ", ".join(repr(name) for name in classes.tolist()[:most])
    return f"{shown} and {len(classes) - most} more" if len(classes) > most else shown
