"""Match table columns to classes by name, in any column order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs.arrays import as_array, join_names, to_python

Kind = Literal["prob", "logit"]
Floats = NDArray[np.floating[Any]]

_BOOLEAN_DIGITS = {"false": "0", "true": "1", "0": "0", "1": "1"}


def column_names(values: Any) -> tuple[Any, ...] | None:
    """Return the column names of a table, or None for anything else."""
    names = getattr(values, "column_names", None)  # Arrow; its `columns` holds the data
    if names is None:
        names = getattr(values, "columns", None)
    return None if names is None else tuple(to_python(name) for name in names)


def order_columns(
    array: Floats,
    table: Any,
    *,
    labels: Any = None,
    classes: Sequence[Any] | None = None,
    kind: Kind = "prob",
    name: str = "probs",
) -> tuple[Floats, Sequence[Any] | None]:
    """Reorder the columns of a table to match the classes, if the columns are named after them.

    A column is named after a class by the class name alone or, as in a score file, by
    `prob_<class>` or `logit_<class>`; names are compared as text. Without `classes`, numeric labels
    mean the classes 0..K-1, and other labels the classes that the columns name. Column names
    unrelated to the classes are ignored, and the columns are taken in class order; the same holds
    for the default names 0..K-1 of a table without names.
    """
    if array.ndim == 1:
        _check_single_column(table, labels, classes, kind, name)
        return array, classes
    names = column_names(table)
    if names is None or len(names) != array.shape[1]:
        return array, classes
    forms = _forms(names, kind)
    inferred = _infer_classes(labels, forms) if classes is None else classes
    if inferred is None or len(inferred) != len(names):
        return array, classes  # `as_labels` raises the error
    order = _find_order(names, forms, [_text(c) for c in inferred], name)
    ordered = array if order is None else np.take(array, order, axis=1)
    return ordered, None if isinstance(inferred, range) else inferred  # 0..K-1 need no names


def _find_order(
    names: tuple[Any, ...], forms: list[list[str]], wanted: list[str], name: str
) -> list[int] | None:
    """Return the column index of each class, or None if the columns are in class order."""
    have, want = _booleans_as_digits(forms[-1]), _booleans_as_digits(wanted)
    if have is not None and want is not None:
        forms, wanted = [have], want
    exact = next((form for form in forms if _same_names(form, wanted)), None)
    counted = names == tuple(range(len(names))) and not isinstance(names[0], bool)
    if exact == wanted or (exact is None and (counted or _names_unrelated(forms, wanted))):
        return None
    if exact is not None and not counted:
        return [exact.index(class_name) for class_name in wanted]
    classes = ", ".join(wanted[:8]) + (" ..." if len(wanted) > 8 else "")
    raise InputError(
        f"{name} has the columns {join_names(names)}, but the classes are {classes}: name each "
        "column after its class, or pass an array whose columns are in class order."
    )


def _names_unrelated(forms: list[list[str]], wanted: list[str]) -> bool:
    """Return whether no column is named after one of the classes, nor prefixed for another."""
    shared = any(set(form) & set(wanted) for form in forms)
    numbers = all(_is_integer(text) for text in wanted)
    return not shared and (numbers or not _prefixes_name_classes(forms))


def _prefixes_name_classes(forms: list[list[str]]) -> bool:
    """Return whether the columns have a score prefix followed by a class name."""
    return len(forms) > 1 and not all(_is_integer(text) for text in forms[1])


def _infer_classes(labels: Any, forms: list[list[str]]) -> Sequence[Any] | None:
    """Infer the classes from the labels and the column names, or return None."""
    if labels is None:
        return None
    array = as_array(labels, "labels")
    if array.ndim != 1 or not len(array):
        return None  # `as_labels` raises the error
    present = {_text(to_python(value)) for value in np.unique(array)}
    if array.dtype.kind in "biuf":
        return range(len(forms[0])) if array.dtype.kind == "b" else _numeric_classes(present, forms)
    best = max(reversed(forms), key=lambda form: len(present & set(form)))
    return tuple(best) if present & set(best) or _prefixes_name_classes(forms) else None


def _numeric_classes(present: set[str], forms: list[list[str]]) -> Sequence[int]:
    """Return the integers that the columns are named, if all labels are among them; else 0..K-1."""
    k = len(forms[0])
    for form in forms:
        counted = _same_names(form, [str(i) for i in range(k)])
        if not counted and all(_is_integer(text) for text in form) and present <= set(form):
            return [int(text) for text in form]
    return range(k)


def _check_single_column(
    column: Any, labels: Any, classes: Sequence[Any] | None, kind: Kind, name: str
) -> None:
    """Refuse a single column named after the first of two classes: it must be the second."""
    column_name = getattr(column, "name", None)
    pair = _class_pair(labels, classes) if isinstance(column_name, str) else None
    if pair is None or _text(pair[0]) not in {form[0] for form in _forms((column_name,), kind)}:
        return
    remedy = "pass both columns" if classes is None else f"pass classes={pair[::-1]}"
    raise InputError(
        f"{name} is named {column_name!r}, but a single column belongs to the second class, "
        f"{pair[1]!r}: pass that column, or {remedy}."
    )


def _class_pair(labels: Any, classes: Sequence[Any] | None) -> list[Any] | None:
    """Return the two classes if they are known, else None."""
    if classes is not None:
        return list(classes) if len(classes) == 2 else None
    if labels is None or as_array(labels, "labels").dtype.kind not in "biuf":
        return None  # `as_labels` asks for the classes
    return [0, 1]


def _forms(names: tuple[Any, ...], kind: Kind) -> list[list[str]]:
    """Return the column names as text and, if all have the score prefix, without it."""
    bare = [_text(name) for name in names]
    prefix = f"{kind}_"
    if not all(text.startswith(prefix) for text in bare):
        return [bare]
    return [bare, [text.removeprefix(prefix).strip() for text in bare]]


def _text(name: Any) -> str:
    whole = isinstance(name, float) and name.is_integer()
    return str(int(name) if whole else name).strip()


def _same_names(form: list[str], wanted: list[str]) -> bool:
    return len(set(form)) == len(form) and set(form) == set(wanted)


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _booleans_as_digits(names: list[str]) -> list[str] | None:
    """Write false and true as 0 and 1; return None for other classes."""
    digits = [_BOOLEAN_DIGITS.get(name.lower(), "") for name in names]
    return digits if sorted(digits) == ["0", "1"] else None
