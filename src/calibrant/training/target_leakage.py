"""Columns that give the labels away: most often the target itself, left in the table."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from calibrant.data.encoders.table_columns import Column, Table, is_number
from calibrant.inputs import FloatArray, IntArray

__all__ = ["telltale_columns"]

_ROWS = 100
"""With fewer rows a column may tell classes apart by chance."""


def telltale_columns(table: Table, labels: IntArray) -> list[str]:
    """Name the columns each of which tells all classes apart without a single error.

    A column of numbers does where every class keeps to a range of its own; a column of words where
    no word occurs in two classes, there being at most a tenth as many words as rows. Missing values
    count as a word. Such a column was nearly always made from the labels. Fewer than 100 rows name
    none.

    It finds no column that gives the labels away with some noise, nor two that do so together.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.data.encoders.table_columns import as_table
    >>> from calibrant.training.target_leakage import telltale_columns
    >>> sales = np.arange(200.0)
    >>> table = as_table({"sales": sales, "weight": sales % 7})
    >>> telltale_columns(table, (sales > 99.5).astype(int))
    ['sales']
    """
    if len(labels) < _ROWS:
        return []
    columns = zip(table.names, table.columns, strict=True)
    return [name for name, column in columns if column is not None and _tells(column, labels)]


def _tells(column: Column, labels: IntArray) -> bool:
    if is_number(column):
        return not np.isnan(column).any() and _own_ranges(column, labels)
    coded = column.dictionary_encode()
    words = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False) + 1
    if 10 * len(coded.dictionary) > len(labels):
        return False
    pairs = np.unique(np.column_stack([words, labels]), axis=0)
    return len(np.unique(pairs[:, 0])) == len(pairs)


def _own_ranges(values: FloatArray, labels: IntArray) -> bool:
    """Say whether the ranges of the classes do not touch."""
    classes = np.unique(labels)
    ends = sorted((values[labels == c].min(), values[labels == c].max()) for c in classes)
    return all(low[1] < high[0] for low, high in pairwise(ends))
