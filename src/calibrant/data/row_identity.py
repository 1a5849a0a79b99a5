"""Detection of equal rows, within a table and between tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from calibrant.data.row_columns import as_words
from calibrant.errors import InputError
from calibrant.files.source import BatchLocation
from calibrant.inputs import IntArray


def same_rows(one: pa.Table, other: pa.Table, columns: Sequence[str]) -> IntArray:
    """Find the rows of one table that also occur in another, as pairs of positions.

    Rows are equal if all columns are: text after stripping, numbers by value whatever their type
    (5 equals 5.0, and "5" if one table has text). Missing values are equal to each other, but a row
    with only missing values equals no other row. Near-duplicates are not found.

    Examples
    --------
    >>> golden = pa.table({"text": ["too small", "it broke "]})
    >>> logs = pa.table({"text": ["late", "it broke", "it broke"]})
    >>> same_rows(golden, logs, ["text"])
    array([[1, 1]])
    """
    _check_columns((one, other), columns)
    codes, known = _row_codes((one, other), columns)
    codes_one, codes_other = codes[: one.num_rows], codes[one.num_rows :]
    first = np.full(int(codes.max(initial=-1)) + 1, -1, dtype=np.int64)
    first[codes_other[::-1]] = np.arange(len(codes_other))[::-1]  # the first occurrence wins
    match = np.where(known[: one.num_rows], first[codes_one], -1)
    rows = np.flatnonzero(match >= 0)
    return np.column_stack([rows, match[rows]])


def content_groups(table: pa.Table, columns: Sequence[str]) -> IntArray:
    """Number rows by content, from 0 in order of appearance; equal rows get equal numbers.

    Equality is that of `same_rows`; a row with only missing values gets its own number. Used as
    `groups` of `split_rows`, this keeps duplicates in one part.

    Examples
    --------
    >>> content_groups(pa.table({"text": ["late", "it broke", "late", None]}), ["text"])
    array([0, 1, 0, 2])
    """
    _check_columns((table,), columns)
    codes, known = _row_codes((table,), columns)
    empty = np.flatnonzero(~known)
    codes[empty] = len(codes) + np.arange(len(empty))
    return _number_by_appearance(codes)


def _row_codes(
    tables: tuple[pa.Table, ...], columns: Sequence[str]
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Number the rows of all tables by content; also return which rows have a value."""
    n = sum(table.num_rows for table in tables)
    codes, known = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
    for name in columns:
        column = _comparable([table.column(name) for table in tables], name)
        known |= ~np.asarray(column.is_null(), dtype=bool)
        numbers = column.dictionary_encode(null_encoding="encode").indices
        more = np.asarray(numbers, dtype=np.int64)
        codes = _number_by_appearance(
            codes * (int(more.max(initial=0)) + 1) + more
        )  # below 2**63: both < n
    return codes, known


def _number_by_appearance(codes: IntArray) -> IntArray:
    """Number values by first appearance."""
    return np.asarray(pa.array(codes).dictionary_encode().indices, dtype=np.int64)


def _comparable(parts: list[pa.ChunkedArray], name: str) -> Any:
    """Concatenate columns as numbers if all are numeric, else as text."""
    if all(_is_number(part.type) for part in parts):
        wide = [part.cast(pa.float64(), safe=False) for part in parts]
        whole = pa.concat_arrays([chunk for part in wide for chunk in part.chunks])
        return pc.if_else(pc.is_nan(whole), pa.scalar(None, pa.float64()), whole)
    words = [as_words(part, BatchLocation(Path("the table")), name) for part in parts]
    whole = pa.concat_arrays([chunk.cast(pa.large_string()) for w in words for chunk in w.chunks])
    trimmed = pc.utf8_trim_whitespace(whole)
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.large_string()), trimmed)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind))


def _check_columns(tables: tuple[pa.Table, ...], columns: Sequence[str]) -> None:
    if isinstance(columns, str) or not columns:
        raise InputError(f"columns must be a list of at least one column name, got {columns!r}.")
    for name in columns:
        for table in tables:
            if name not in table.column_names:
                shown = ", ".join(f"'{known}'" for known in table.column_names[:20])
                raise InputError(f"a table has no column '{name}' (columns: {shown}).")
