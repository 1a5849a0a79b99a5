"""Columns of a user's file as text, as numbers, or as what all their cells are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from calibrant.data.encoders.table_columns import number_words
from calibrant.errors import InputError
from calibrant.files.source import Place

__all__ = ["as_inferred", "as_numbers", "as_words"]

_MISSING = ("", "NA", "N/A", "#N/A", "null", "NULL", "None", "nan", "NaN")
"""Cells without a value in a column of numbers; in a column of text only '' is one."""

_KINDS = (pa.float64(), pa.bool_(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
_HEAD = 256


def as_inferred(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give a column of text the type that all its cells have.

    Whole numbers, numbers, true and false, dates and times as ISO 8601 writes them; a column in
    which a single cell is none of these stays text, as it was.

    Examples
    --------
    >>> str(as_inferred(pa.chunked_array([["1", None, "2"]])).type)
    'int64'
    >>> str(as_inferred(pa.chunked_array([["1", "two"]])).type)
    'string'
    """
    # Most columns of text show it in their first cells, and need not be tried as a whole.
    head = _trimmed(column.slice(0, _HEAD))
    kinds = [kind for kind in _KINDS if _cast(head, kind) is not None]
    trimmed = _trimmed(column) if kinds else column
    if trimmed.null_count == len(trimmed):
        return column
    for kind in kinds:
        found = _cast(trimmed, kind)
        if found is not None:
            whole = _cast(trimmed, pa.int64()) if kind == pa.float64() else None
            return found if whole is None else whole
    return column


def as_words(column: pa.ChunkedArray, place: Place, name: str) -> pa.ChunkedArray:
    """Write any column of single values as text; whole numbers stand without a point."""
    kind = column.type
    if pt.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pt.is_nested(kind):
        raise InputError(
            f"{place.file}, {place.column(name)} holds {kind}, not text: name another column."
        )
    if pt.is_floating(kind):
        return pa.chunked_array([number_words(_float64(column))]).cast(pa.string())
    try:
        found = column.cast(pa.string())
    except pa.ArrowInvalid:
        raise InputError(
            f"{place.file}, {place.column(name)} holds bytes that are not UTF-8 text: decode them."
        ) from None
    return pc.if_else(pc.equal(found, ""), pa.scalar(None, pa.string()), found)


def as_numbers(column: pa.ChunkedArray, place: Place, name: str) -> pa.ChunkedArray:
    """Read any column of single values as float64; refuse the first cell that is no number."""
    kind = column.type
    if pt.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if _is_text(kind):
        trimmed = _trimmed(column)
        for way in (pa.float64(), pa.bool_()):
            found = _cast(trimmed, way)
            if found is not None:
                return found.cast(pa.float64())
        raise _no_number(trimmed, place, name)
    if pt.is_null(kind) or pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind):
        return column.cast(pa.float64(), safe=False)
    if pt.is_boolean(kind):
        return column.cast(pa.float64())
    raise InputError(
        f"{place.file}, {place.column(name)} must hold numbers, but holds {kind}: turn it into "
        "numbers, as it was when the model was trained."
    )


def _trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the cells without spaces around them, and null where they hold no value."""
    text = column.cast(pa.string()) if column.type != pa.string() else column
    bare = pc.utf8_trim_whitespace(text)
    missing = pc.is_in(bare, value_set=pa.array(_MISSING))
    return pc.if_else(missing, pa.scalar(None, pa.string()), bare)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Return the column in this type, or None where a cell is not of it."""
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        return None


def _no_number(column: pa.ChunkedArray, place: Place, name: str) -> InputError:
    """Return the sentence about the first cell that is no number."""
    at, value = next((i, v) for i, v in enumerate(column.to_pylist()) if not _is_number(v))
    shown = f"{value[:60]!r}"
    comma = value.replace(",", "", 1).lstrip("-").isdecimal()
    what = "has a decimal comma" if comma else "is not a number"
    remedy = "write a decimal point" if comma else "correct that cell, or leave it empty"
    return InputError(f"{place.row(at)}, {place.column(name)}: {shown} {what}: {remedy}.")


def _is_number(value: str | None) -> bool:
    return value is None or _cast(pa.chunked_array([[value]]), pa.float64()) is not None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or str(kind) == "string_view")


def _float64(column: pa.ChunkedArray) -> Any:
    return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
