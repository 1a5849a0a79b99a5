"""The user's labels as whole numbers, and the class names behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from calibrant.data.encoders.table_columns import is_missing
from calibrant.errors import InputError
from calibrant.inputs import IntArray

__all__ = ["codes_of", "read_classes"]

_LARGEST = 2.0**53
"""Above it, whole numbers that differ are the same float."""


def read_classes(y: Any, *, n: int) -> tuple[IntArray, NDArray[Any]]:
    """Return the classes that occur, sorted, and the place of each row's label among them.

    Examples
    --------
    >>> from calibrant.training.class_labels import read_classes
    >>> codes, classes = read_classes(["spam", "ham", "spam"], n=3)
    >>> codes.tolist(), classes.tolist()
    ([1, 0, 1], ['ham', 'spam'])
    """
    labels = _read(y, n, "y")
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise _mixed({type(label).__name__ for label in labels}, "y") from None
    if len(classes) < 2:
        raise InputError(
            f"y holds one class only, {classes.tolist()[0]!r}, in {n} rows: rows of at least two "
            "classes are needed to learn to tell them apart."
        )
    return codes.astype(np.int64).reshape(-1), classes


def codes_of(y: Any, classes: NDArray[Any], *, n: int) -> IntArray:
    """Return the place of each steer row's label among the classes of the train rows."""
    labels = _read(y, n, "steer y").tolist()
    place = {name: i for i, name in enumerate(classes.tolist())}
    for row, label in enumerate(labels):
        if label not in place:
            raise InputError(
                f"steer y row {row} is {label!r}, a class that the train rows do not have "
                f"({_listed(classes)}): add train rows of it, or leave the row out."
            )
    return np.array([place[label] for label in labels], dtype=np.int64)


def _read(y: Any, n: int, name: str) -> NDArray[Any]:
    """Read labels as an array of one dimension, without missing ones."""
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
    """Read labels as an array in which no boolean became a number and no number a text."""
    if hasattr(y, "to_pylist"):  # Arrow
        y = y.to_pylist()
    elif hasattr(y, "detach"):  # a torch tensor
        y = y.detach().cpu().numpy()
    array = np.asarray(y)
    kind, mixable = array.dtype.kind, isinstance(y, list | tuple)
    if kind == "O" or (kind in "US" and mixable):
        return _of_one_type(np.asarray(y, dtype=object), name)
    if kind in "iuf" and mixable:
        _refuse_booleans(np.asarray(y, dtype=object).reshape(-1), name)
    return array


def _of_one_type(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Refuse missing labels, and give numbers and booleans among objects their type."""
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
    """Refuse booleans among numbers: True would become the class 1."""
    if any(isinstance(label, bool | np.bool_) for label in numbers):
        raise _mixed({type(label).__name__ for label in numbers}, name)


def _mixed(kinds: set[str], name: str) -> InputError:
    return InputError(f"{name} mixes {' and '.join(sorted(kinds))}: name all classes by one type.")


def _check_whole(labels: NDArray[Any], name: str) -> None:
    finite = np.isfinite(labels)
    if not finite.all():
        row = int(np.argmin(finite))
        found = "missing" if np.isnan(labels[row]) else f"{labels[row]}, which is no class"
        raise InputError(f"{name} row {row} is {found}: drop that row, or find its label.")
    huge = np.abs(labels) > _LARGEST
    if huge.any():
        row = int(np.argmax(huge))
        raise InputError(
            f"{name} row {row} is {labels[row]:g}, beyond which numbers run into each other: name "
            "the classes by text."
        )
    whole = labels == np.floor(labels)
    if not whole.all():
        row = int(np.argmin(whole))
        raise InputError(
            f"Unknown label type: {name} row {row} is {labels[row]:g}, which is continuous and no "
            "class: cut the target into classes first, as calibrant.data.TargetCut does."
        )


def _listed(classes: NDArray[Any], most: int = 8) -> str:
    shown = ", ".join(repr(name) for name in classes.tolist()[:most])
    return f"{shown} and {len(classes) - most} more" if len(classes) > most else shown
