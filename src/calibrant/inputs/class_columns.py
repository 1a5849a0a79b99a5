"""A table's columns by their names: called after the classes, they may come in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs.arrays import as_array, listed, plain

__all__ = ["Kind", "column_names", "in_class_order"]

Kind = Literal["prob", "logit"]
Floats = NDArray[np.floating[Any]]

_TRUTH = {"false": "0", "true": "1", "0": "0", "1": "1"}


def column_names(values: Any) -> tuple[Any, ...] | None:
    """Return the names of a table's columns; None for anything that is not a table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> column_names(pa.table({"cat": [0.2], "dog": [0.8]})), column_names([[0.2, 0.8]])
    (('cat', 'dog'), None)
    """
    names = getattr(values, "column_names", None)  # Arrow's word; its `columns` are the data
    if names is None:
        names = getattr(values, "columns", None)
    return None if names is None else tuple(plain(name) for name in names)


def in_class_order(
    array: Floats,
    given: Any,
    *,
    labels: Any = None,
    classes: Sequence[Any] | None = None,
    kind: Kind = "prob",
    name: str = "probs",
) -> tuple[Floats, Sequence[Any] | None]:
    """Put a table's columns into the order of the classes, if they are called after them.

    A column is called after a class by its bare name or, as in a score file, by `prob_<class>` or
    `logit_<class>`; names are compared as text. Without `classes` the labels say what they are:
    for numbers 0..K-1, or else the names of the columns. Names of columns that have nothing to do
    with the classes say nothing, and then the columns stand in the order of the classes; so do
    the numbers 0..K-1, which a table without names has.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"dog": [0.8], "cat": [0.2]})
    >>> in_class_order(np.array([[0.8, 0.2]]), table, classes=["cat", "dog"])
    (array([[0.2, 0.8]]), ['cat', 'dog'])
    >>> in_class_order(np.array([[0.8, 0.2]]), table, labels=["cat"])[1]
    ('dog', 'cat')
    """
    if array.ndim == 1:
        _check_lone(given, labels, classes, kind, name)
        return array, classes
    names = column_names(given)
    if names is None or len(names) != array.shape[1]:
        return array, classes
    forms = _forms(names, kind)
    found = _told_by_labels(labels, forms) if classes is None else classes
    if found is None or len(found) != len(names):
        return array, classes  # `as_labels` says so
    order = _order(names, forms, [_text(c) for c in found], name)
    ordered = array if order is None else np.take(array, order, axis=1)
    return ordered, None if isinstance(found, range) else found  # 0..K-1 need no names


def _order(
    names: tuple[Any, ...], forms: list[list[str]], wanted: list[str], name: str
) -> list[int] | None:
    """Return where each class stands among the columns; None: where it stands in the list."""
    have, want = _truths(forms[-1]), _truths(wanted)
    if have is not None and want is not None:
        forms, wanted = [have], want
    exact = next((form for form in forms if _same(form, wanted)), None)
    counted = names == tuple(range(len(names))) and not isinstance(names[0], bool)
    if exact == wanted or (exact is None and (counted or _silent(forms, wanted))):
        return None
    if exact is not None and not counted:
        return [exact.index(one) for one in wanted]
    classes = ", ".join(wanted[:8]) + (" ..." if len(wanted) > 8 else "")
    raise InputError(
        f"{name} has the columns {listed(names)}, but the classes are {classes}: name every column "
        "after its class, or give a plain array whose columns stand in the order of the classes."
    )


def _silent(forms: list[list[str]], wanted: list[str]) -> bool:
    """Whether no column is called after a class, nor, by its prefix, after another one."""
    shared = any(set(form) & set(wanted) for form in forms)
    numbers = all(_is_whole(text) for text in wanted)
    return not shared and (numbers or not _name_others(forms))


def _name_others(forms: list[list[str]]) -> bool:
    """Whether columns have the prefix of scores, so that what follows it must be a class."""
    return len(forms) > 1 and not all(_is_whole(text) for text in forms[1])


def _told_by_labels(labels: Any, forms: list[list[str]]) -> Sequence[Any] | None:
    """Return the classes that labels without `classes` are about, as far as columns tell them."""
    if labels is None:
        return None
    array = as_array(labels, "labels")
    if array.ndim != 1 or not len(array):
        return None  # `as_labels` says so
    found = {_text(plain(value)) for value in np.unique(array)}
    if array.dtype.kind in "biuf":
        return range(len(forms[0])) if array.dtype.kind == "b" else _numbers(found, forms)
    best = max(reversed(forms), key=lambda form: len(found & set(form)))
    return tuple(best) if found & set(best) or _name_others(forms) else None


def _numbers(found: set[str], forms: list[list[str]]) -> Sequence[int]:
    """Return the whole numbers that columns are called, if all labels are among them."""
    k = len(forms[0])
    for form in forms:
        counted = _same(form, [str(i) for i in range(k)])
        if not counted and all(_is_whole(text) for text in form) and found <= set(form):
            return [int(text) for text in form]
    return range(k)


def _check_lone(
    given: Any, labels: Any, classes: Sequence[Any] | None, kind: Kind, name: str
) -> None:
    """Refuse a lone column that is called after the first of two classes: it is of the second."""
    called = getattr(given, "name", None)
    pair = _pair(labels, classes) if isinstance(called, str) else None
    if pair is None or _text(pair[0]) not in {form[0] for form in _forms((called,), kind)}:
        return
    remedy = "give both columns" if classes is None else f"turn classes into {pair[::-1]}"
    raise InputError(
        f"{name} is called {called!r}, but a lone column is of the second class, {pair[1]!r}: "
        f"give that column, or {remedy}."
    )


def _pair(labels: Any, classes: Sequence[Any] | None) -> list[Any] | None:
    """Return the two classes, where they are known."""
    if classes is not None:
        return list(classes) if len(classes) == 2 else None
    if labels is None or as_array(labels, "labels").dtype.kind not in "biuf":
        return None  # `as_labels` asks for the classes
    return [0, 1]


def _forms(names: tuple[Any, ...], kind: Kind) -> list[list[str]]:
    """Return what the columns may be called after: their names, and these without their prefix."""
    bare = [_text(name) for name in names]
    prefix = f"{kind}_"
    if not all(text.startswith(prefix) for text in bare):
        return [bare]
    return [bare, [text.removeprefix(prefix).strip() for text in bare]]


def _text(name: Any) -> str:
    whole = isinstance(name, float) and name.is_integer()
    return str(int(name) if whole else name).strip()


def _same(form: list[str], wanted: list[str]) -> bool:
    return len(set(form)) == len(form) and set(form) == set(wanted)


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _truths(names: list[str]) -> list[str] | None:
    """Write false and true as 0 and 1, which mean the same; None for other classes."""
    found = [_TRUTH.get(name.lower(), "") for name in names]
    return found if sorted(found) == ["0", "1"] else None
