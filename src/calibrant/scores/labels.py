"""Conversion of labels to class positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.files.source import BatchLocation, ColumnOptions, Source
from calibrant.inputs import IntArray
from calibrant.inputs.arrays import MISSING, is_gap, name_of, spellings
from calibrant.scores.columns import Layout

BOOLEAN_CODES = {"false": 0, "true": 1, "0": 0, "1": 1}
_GAPS = ("na", "n/a", "#n/a", "null", "none")  # missing, unless a class has this name


def resolve_classes(
    layout: Layout, sources: Iterable[Source], ask: ColumnOptions, pair: tuple[str, str] | None
) -> Layout:
    """Determine the two classes of a single `prob` or `logit` column.

    Without `positive` the labels must be 0 and 1, or false and true. With it, the other value that
    occurs is the negative class; usually the first batch contains both. `pair` holds the names
    given by the file.
    """
    if not layout.lone:
        return layout
    if pair is not None:
        return replace(layout, classes=_checked_pair(pair, ask.positive), named_by="classes")
    if ask.positive is not None:
        return _with_positive(layout, sources, ask.positive)
    first = next(_distinct_labels(sources, layout.label), None)
    truth = str(first).strip().lower() in ("true", "false")
    return replace(layout, classes=("False", "True") if truth else ("0", "1"))


def _checked_pair(pair: tuple[str, str], positive: str | None) -> tuple[str, str]:
    if positive is not None and positive != pair[1]:
        raise InputError(
            f"--positive {positive} contradicts the archive, whose scores are of '{pair[1]}', "
            f"the second of its classes '{pair[0]}' and '{pair[1]}': omit --positive."
        )
    return pair


def _with_positive(layout: Layout, sources: Iterable[Source], positive: str) -> Layout:
    """Find the other class, and add a note if the positive class does not occur."""
    others: list[str] = []
    seen = False
    for value in _distinct_labels(sources, layout.label):
        if positive in spellings(value):
            seen = True
        elif not is_gap(value) and name_of(value) not in others:
            others.append(name_of(value))
        if len(others) + seen > 1:
            break
    resolved = replace(
        layout, classes=(next(iter(others), f"not {positive}"), positive), named_by="--positive"
    )
    if seen or len(others) != 1:
        return resolved
    note = f"No label is '{positive}', so all rows count as negative; check --positive."
    return replace(resolved, notes=(*resolved.notes, note))


def class_codes(column: pa.Array, layout: Layout, place: BatchLocation) -> IntArray:
    """Return the class position of each label.

    Labels are matched as text, so that the number 3 matches `prob_3`.
    """
    where, column = place.column(layout.label), _as_plain_column(column)
    if not _is_nameable(column.type):
        raise InputError(
            f"{place.file}: {where} has type {column.type}: "
            "a label must be a name, an integer or a boolean."
        )
    if column.null_count:
        row = int(pc.index(column.is_null(), True).as_py())
        raise _missing_label(place, row, where)
    k = len(layout.classes)
    if pa.types.is_integer(column.type) and layout.classes == tuple(map(str, range(k))):
        codes: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        if codes.min() >= 0 and codes.max() < k:
            return codes.astype(np.int64, copy=False)
    return _look_up_codes(column, layout, place)


def as_names(column: pa.Array, name: str, place: BatchLocation) -> NDArray[np.str_]:
    """Convert a column of single values to names; missing values become '(missing)'."""
    if pa.types.is_nested(column.type):
        raise InputError(
            f"{place.file}: {place.column(name)} has type {column.type}, with several "
            "values per row: choose a column of single values."
        )
    encoded = _as_plain_column(column).dictionary_encode()
    names = [name_of(value) for value in encoded.dictionary.to_pylist()]
    positions = pc.fill_null(encoded.indices, len(names)).to_numpy(zero_copy_only=False)
    values: NDArray[np.str_] = np.array([*names, MISSING])[positions]
    return values


def _look_up_codes(column: pa.Array, layout: Layout, place: BatchLocation) -> IntArray:
    encoded = column.dictionary_encode()
    position = {name: i for i, name in enumerate(layout.classes)}
    truth = layout.lone and not layout.named_by
    codes_of_values: list[int] = []
    for value in encoded.dictionary.to_pylist():
        code = _position(value, position, truth=truth)
        if code is None:
            row = pc.index(encoded.indices, len(codes_of_values)).as_py()
            raise _unknown_label(value, layout, place, int(row))
        codes_of_values.append(code)
    codes: IntArray = np.array(codes_of_values, dtype=np.int64)[
        encoded.indices.to_numpy(zero_copy_only=False)
    ]
    return codes


def _position(value: Any, position: Mapping[str, int], *, truth: bool) -> int | None:
    for spelling in spellings(value):
        if spelling in position:
            return position[spelling]
        if truth and spelling.lower() in BOOLEAN_CODES:
            return BOOLEAN_CODES[spelling.lower()]
    return None


def _distinct_labels(sources: Iterable[Source], label: str) -> Iterator[Any]:
    """Yield the distinct labels of each batch."""
    for source in sources:
        for batch in source.batches((), (label,), 1 << 16):
            column = _as_plain_column(batch.column(label))
            if not _is_nameable(column.type):
                return
            yield from pc.unique(column).to_pylist()


def _unknown_label(value: Any, layout: Layout, place: BatchLocation, row: int) -> InputError:
    where = place.column(layout.label)
    if is_gap(value) or name_of(value).lower() in _GAPS:
        return _missing_label(place, row, where)
    shown = f"{place.row(row)}, {where}: label {name_of(value)!r}"
    if layout.lone and not layout.named_by:
        return InputError(
            f"{shown} is not 0, 1, true or false: name the class that '{layout.values[0]}' is the "
            "probability of with --positive NAME."
        )
    if layout.named_by == "--positive":
        negative, positive = layout.classes
        return InputError(
            f"{shown} is neither the positive class '{positive}' nor '{negative}': a single "
            f"'{layout.values[0]}' column has two classes: correct the label or --positive."
        )
    listed = ", ".join(f"'{name}'" for name in layout.classes[:8])
    more = f" and {len(layout.classes) - 8} more" if len(layout.classes) > 8 else ""
    remedy = "or the array classes" if layout.lone else "or add its score column"
    return InputError(
        f"{shown} is not among the classes {listed}{more}: correct the label {remedy}."
    )


def _missing_label(place: BatchLocation, row: int, where: str) -> InputError:
    return InputError(f"{place.row(row)}, {where}: the label is missing: fill or drop that row.")


def _as_plain_column(column: pa.Array) -> pa.Array:
    """Convert string views and UUIDs, which Arrow functions do not fully support, to text."""
    if isinstance(column.type, pa.BaseExtensionType):
        words = [None if value is None else str(value) for value in column.to_pylist()]
        return pa.array(words, pa.string())
    kind = str(column.type)  # not available in the oldest supported pyarrow
    return column.cast(pa.string()) if kind == "string_view" else column


def _is_nameable(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_decimal,
        pa.types.is_null,
    )
    return any(test(kind) for test in tests)
