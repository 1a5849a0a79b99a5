"""Arrays and names: conversion, class columns, positions in messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError

MISSING = "(missing)"  # Group of the rows without a group


def spellings(value: Any) -> tuple[str, ...]:
    """Return the class names that a value may stand for, the likeliest first."""
    if isinstance(value, bool):
        return (str(value), str(value).lower(), str(int(value)))
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    text = str(value).strip()
    # A column of integers with a missing value is often saved as floats.
    return (text.split(".")[0], text) if re.fullmatch(r"-?\d+\.0*", text) else (text,)


def is_gap(value: Any) -> bool:
    """Return whether a value is missing, or is text that a file writes for a missing one."""
    if isinstance(value, str):
        return value.strip().lower() in ("", "nan")
    return is_missing(value)


def name_of(value: Any) -> str:
    """Return the name of a value; '(missing)' for a missing one."""
    value = to_python(value)
    return MISSING if is_gap(value) else spellings(value)[0]


_NUMBERS = {"bool", "int", "float", "int64", "float64", "bool_", "Decimal"}


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Convert a list, numpy array, pandas, polars or Arrow column, or CPU tensor to numpy."""
    values = _refuse_unsupported(values, name)
    if hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = _table_to_numpy(values)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} cannot be read as an array: {error}.") from None
    if array.dtype.kind == "O":
        array = _infer_dtype(array, name)
    return array


def as_float(values: Any, name: str) -> NDArray[np.floating[Any]]:
    """Convert numbers to a float array; float32 and float64 keep their dtype."""
    array = as_array(values, name)
    if array.dtype.kind in "biu":
        return array.astype(np.float64)
    if array.dtype.kind != "f":
        first = repr(to_python(array.ravel()[0])) if array.size else "none"
        raise InputError(f"{name} must be numbers, got {array.dtype}: first value {first}.")
    if array.dtype == np.float16:
        return array.astype(np.float32)
    if array.dtype in (np.float32, np.float64) and array.dtype.isnative:
        return array
    return array.astype(np.float64)  # long doubles and non-native byte order


def as_objects(values: Any) -> NDArray[Any]:
    """Convert a column of any values to numpy; masked entries become None."""
    if isinstance(values, np.ma.MaskedArray):
        filled = np.asarray(values.data).astype(object)
        filled[np.ma.getmaskarray(values)] = None
        return filled
    if hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = _table_to_numpy(values)
    if isinstance(values, list | tuple):  # np.asarray would turn NaN among strings into 'nan'
        objects = np.empty(len(values), dtype=object)
        objects[:] = values
        return objects
    return np.asarray(values)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or one of pandas' missing markers."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True  # comparing pd.NA with itself is not a bool
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # arrays and other values without a truth value
        return False


def first_position(mask: NDArray[Any]) -> tuple[int, ...]:
    """Return the index of the first true entry of a mask."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def format_position(index: tuple[int, ...]) -> str:
    """Format an index for an error message."""
    row = f"row {index[0]}"
    return row if len(index) == 1 else f"{row}, column {index[1]}"


def missing_value_error(name: str, mask: NDArray[Any]) -> InputError:
    """Return the error that names the position of the first missing value."""
    if mask.ndim == 0:
        return InputError(f"{name} is missing: pass an array, got None.")
    where = format_position(first_position(mask))
    return InputError(f"{name} has a missing value in {where}: drop or fill that row.")


def to_python(value: Any) -> Any:
    """Convert a numpy scalar to the Python value; leave other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def join_names(names: Sequence[Any], most: int = 8) -> str:
    """Join names for a message; of more than `most`, show the first ones and count the rest."""
    shown = ", ".join(repr(n) for n in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _refuse_unsupported(values: Any, name: str) -> Any:
    """Refuse sparse matrices, masked values and tensors on other devices."""
    if hasattr(values, "toarray") and hasattr(values, "nnz"):  # scipy.sparse, without importing it
        raise InputError(f"{name} is a sparse matrix: pass {name}.toarray().")
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        if mask.any():
            raise missing_value_error(name, mask)
        return values.data
    if hasattr(values, "detach"):  # a torch tensor, without importing torch
        values = values.detach()
        if str(getattr(values, "dtype", "")) == "torch.bfloat16":  # numpy has no bfloat16
            values = values.float()
        if getattr(getattr(values, "device", None), "type", "cpu") != "cpu":
            raise InputError(f"{name} is a tensor on {values.device}: call .cpu() on it first.")
    return values


def _table_to_numpy(values: Any) -> Any:
    """Convert a pandas, polars or Arrow column or table to numpy."""
    if hasattr(values, "column_names"):  # an Arrow table or record batch
        return np.column_stack([column.to_numpy() for column in values.columns])
    try:
        return values.to_numpy(zero_copy_only=False)  # an Arrow array with nulls or booleans
    except TypeError:
        return values.to_numpy()


def _infer_dtype(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Convert an object array to strings or floats; refuse missing values and mixed types."""
    flat = array.ravel()
    missing = np.fromiter((is_missing(v) for v in flat), bool, len(flat))
    if missing.any():
        raise missing_value_error(name, missing.reshape(array.shape))
    kinds = {type(v).__name__ for v in flat}
    if kinds <= {"str"}:
        return array.astype(str)
    if kinds <= _NUMBERS:
        return array.astype(np.float64)
    raise InputError(
        f"{name} mixes {' and '.join(sorted(kinds))}: pass only numbers or only strings."
    )


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
