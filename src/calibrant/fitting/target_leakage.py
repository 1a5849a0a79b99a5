"""Target leakage: columns that determine the labels, often the target itself."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from calibrant.data.encoders.table_columns import Column, Table, is_date, is_number
from calibrant.inputs import FloatArray, IntArray

LEAKAGE = "possible target leakage"
"""First words of the warning about such a column."""

_MIN_ROWS = 100
"""With fewer rows a column may separate the classes by chance."""


def find_leaking_columns(table: Table, labels: IntArray) -> list[str]:
    """Return the columns that each separate all classes without error.

    A numeric column does if the value ranges of the classes do not overlap; a categorical column
    if no category occurs in two classes and there are at most a tenth as many categories as rows.
    Missing values count as a category. Such a column was almost always derived from the labels.
    With fewer than 100 rows no column is reported.

    Noisy leakage, and leakage through several columns together, is not detected.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.data.encoders.table_columns import as_table
    >>> from calibrant.fitting.target_leakage import find_leaking_columns
    >>> sales = np.arange(200.0)
    >>> table = as_table({"sales": sales, "weight": sales % 7})
    >>> find_leaking_columns(table, (sales > 99.5).astype(int))
    ['sales']
    """
    if len(labels) < _MIN_ROWS:
        return []
    columns = zip(table.names, table.columns, strict=True)
    return [
        name
        for name, column in columns
        if column is not None and _separates_classes(column, labels)
    ]


def _separates_classes(column: Column, labels: IntArray) -> bool:
    if is_date(column):
        column = np.where(np.isnat(column), np.nan, column.astype(np.float64))
    if is_number(column):
        return not np.isnan(column).any() and _has_disjoint_ranges(column, labels)
    encoded = column.dictionary_encode()
    categories = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False) + 1
    if 10 * len(encoded.dictionary) > len(labels):
        return False
    pairs = np.unique(np.column_stack([categories, labels]), axis=0)
    return len(np.unique(pairs[:, 0])) == len(pairs)


def _has_disjoint_ranges(values: FloatArray, labels: IntArray) -> bool:
    """Whether the value ranges of the classes are disjoint."""
    classes = np.unique(labels)
    ends = sorted((values[labels == c].min(), values[labels == c].max()) for c in classes)
    return all(low[1] < high[0] for low, high in pairwise(ends))
