"""Conversion of file columns to text, to numbers, or to an inferred type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from calibrant.data.encoders.number_format import MARKS, PLAIN, Numerals, null_missing
from calibrant.data.encoders.table_columns import format_numbers
from calibrant.errors import InputError
from calibrant.files.source import BatchLocation

_KINDS = (pa.bool_(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
_HEAD = 256


def infer_type(
    column: pa.ChunkedArray, *, decimal: str = ".", missing: tuple[str, ...] = ()
) -> pa.ChunkedArray:
    """Convert a text column to the type that all its cells have, else return it unchanged.

    Types are integers, floats, booleans, and ISO 8601 dates and times. With a decimal comma,
    fractions stay text. White space and words for a missing value do not count.
    """
    # The first cells rule out most types, so that few columns are converted as a whole.
    head = null_missing(column.slice(0, _HEAD), missing)
    number = pa.float64() if decimal == "." else pa.int64()
    types = [kind for kind in (number, *_KINDS) if _try_cast(head, kind) is not None]
    trimmed = null_missing(column, missing) if types else column
    if trimmed.null_count == len(trimmed):
        return column
    for arrow_type in types:
        converted = _try_cast(trimmed, arrow_type)
        if converted is not None:
            integers = _try_cast(trimmed, pa.int64()) if arrow_type == pa.float64() else None
            return converted if integers is None else integers
    return column


def as_words(column: pa.ChunkedArray, place: BatchLocation, name: str) -> pa.ChunkedArray:
    """Convert a column of single values to text; integers have no decimal point."""
    kind = column.type
    if pt.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pt.is_nested(kind):
        raise InputError(
            f"{place.file}, {place.column(name)} contains {kind}, not text: choose another column."
        )
    if pt.is_floating(kind):
        return pa.chunked_array([format_numbers(_float64(column))]).cast(pa.string())
    try:
        text = column.cast(pa.string())
    except pa.ArrowInvalid:
        raise InputError(
            f"{place.file}, {place.column(name)} contains bytes that are not UTF-8: decode them."
        ) from None
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def as_numbers(column: pa.ChunkedArray, place: BatchLocation, name: str) -> pa.ChunkedArray:
    """Convert a column of single values to float64; raise `InputError` for an invalid cell."""
    kind = column.type
    if pt.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if _is_text(kind):
        words = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        values, strays = PLAIN.read(words)
        if len(strays):
            row = int(strays[0])
            raise _not_a_number(words[row].as_py().strip(), place.row(row), place.column(name))
        return pa.chunked_array([pa.array(values, from_pandas=True)])
    if pt.is_null(kind) or pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind):
        return column.cast(pa.float64(), safe=False)
    if pt.is_boolean(kind):
        return column.cast(pa.float64())
    raise InputError(
        f"{place.file}, {place.column(name)} must be numeric, got {kind}: convert it to "
        "numbers, as in the train data."
    )


def _try_cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Cast a column, or return None if a cell does not convert."""
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        return None


def _not_a_number(value: str, row: str, column: str) -> InputError:
    """Return the error for a cell that is not a number with a decimal point."""
    numerals = Numerals.from_texts(pa.array([value]))
    point, comma = (bool(numerals.fits(mark)[0]) for mark in MARKS)
    what, remedy = "is not a number", "correct that cell, or leave it empty"
    if "," in value and point and comma:
        both = " or ".join(f"{numerals.values(mark)[0]:.15g}" for mark in MARKS)
        what = "has a comma that may separate thousands or decimals"
        remedy = f"this column has a decimal point and no separator, so write {both}"
    elif "," in value and comma:
        what, remedy = "has a decimal comma", "write a decimal point, and nothing between thousands"
    return InputError(f"{row}, {column}: {value[:60]!r} {what}: {remedy}.")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or str(kind) == "string_view")


def _float64(column: pa.ChunkedArray) -> Any:
    return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
