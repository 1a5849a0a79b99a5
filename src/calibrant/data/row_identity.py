"""Equal rows: which rows of one table stand in another, and which stand twice in one."""

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
from calibrant.files.source import Place
from calibrant.inputs import IntArray

__all__ = ["content_groups", "same_rows"]


def same_rows(one: pa.Table, other: pa.Table, columns: Sequence[str]) -> IntArray:
    """Find the rows of one table that also stand in another.

    Rows are equal if all the columns are: text without spaces around it, numbers as numbers
    whatever their type (5 is 5.0, and "5" where one table has text). Missing is equal to missing,
    but a row of which all columns are missing is equal to none.

    It does not find rows that are almost equal.

    Examples
    --------
    >>> golden = pa.table({"text": ["too small", "it broke "]})
    >>> logs = pa.table({"text": ["late", "it broke", "it broke"]})
    >>> same_rows(golden, logs, ["text"])
    array([[1, 1]])
    """
    _check_columns((one, other), columns)
    codes, known = _row_codes((one, other), columns)
    mine, theirs = codes[: one.num_rows], codes[one.num_rows :]
    first = np.full(int(codes.max(initial=-1)) + 1, -1, dtype=np.int64)
    first[theirs[::-1]] = np.arange(len(theirs))[::-1]  # the earliest is written last
    found = np.where(known[: one.num_rows], first[mine], -1)
    rows = np.flatnonzero(found >= 0)
    return np.column_stack([rows, found[rows]])


def content_groups(table: pa.Table, columns: Sequence[str]) -> IntArray:
    """Number the rows so that equal rows have equal numbers, from 0 in the order of appearance.

    Equal is as in `same_rows`; a row of which all columns are missing stands for itself. As
    `groups` of `split_rows` this keeps duplicates in one part.

    Examples
    --------
    >>> content_groups(pa.table({"text": ["late", "it broke", "late", None]}), ["text"])
    array([0, 1, 0, 2])
    """
    _check_columns((table,), columns)
    codes, known = _row_codes((table,), columns)
    alone = np.flatnonzero(~known)
    codes[alone] = len(codes) + np.arange(len(alone))
    return _numbered(codes)


def _row_codes(
    tables: tuple[pa.Table, ...], columns: Sequence[str]
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Number the rows of all tables by their content, and say which have any."""
    n = sum(table.num_rows for table in tables)
    codes, known = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
    for name in columns:
        column = _comparable([table.column(name) for table in tables], name)
        known |= ~np.asarray(column.is_null(), dtype=bool)
        numbers = column.dictionary_encode(null_encoding="encode").indices
        more = np.asarray(numbers, dtype=np.int64)
        codes = _numbered(codes * (int(more.max(initial=0)) + 1) + more)  # below 2**63: both < n
    return codes, known


def _numbered(codes: IntArray) -> IntArray:
    """Number values by their first appearance."""
    return np.asarray(pa.array(codes).dictionary_encode().indices, dtype=np.int64)


def _comparable(parts: list[pa.ChunkedArray], name: str) -> Any:
    """Return one column below the other as numbers, if all are, or as text."""
    if all(_is_number(part.type) for part in parts):
        wide = [part.cast(pa.float64(), safe=False) for part in parts]
        whole = pa.concat_arrays([chunk for part in wide for chunk in part.chunks])
        return pc.if_else(pc.is_nan(whole), pa.scalar(None, pa.float64()), whole)
    words = [as_words(part, Place(Path("the table")), name) for part in parts]
    whole = pa.concat_arrays([chunk.cast(pa.large_string()) for w in words for chunk in w.chunks])
    bare = pc.utf8_trim_whitespace(whole)
    return pc.if_else(pc.equal(bare, ""), pa.scalar(None, pa.large_string()), bare)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind))


def _check_columns(tables: tuple[pa.Table, ...], columns: Sequence[str]) -> None:
    if isinstance(columns, str) or not columns:
        raise InputError(f"columns must be a list of at least one column name, got {columns!r}.")
    for name in columns:
        for table in tables:
            if name not in table.column_names:
                shown = ", ".join(f"'{known}'" for known in table.column_names[:20])
                raise InputError(f"a table has no column '{name}': it has {shown}.")
