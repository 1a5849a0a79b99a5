"""Features of trees: numbers as they are, categories as codes, missing values as NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.category_column import CategoryColumn
from calibrant.data.encoders.date_column import DateColumn
from calibrant.data.encoders.table_columns import Column
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.inputs import FloatArray


def tree_features(encoder: TableEncoder, table: Any) -> FloatArray:
    """Return the features (n, d) of rows: one of each column, and one of each part of a date.

    The codes of a category column are those of `CategoryColumn`. A category that the train rows did
    not have counts as a missing value, or as one of the rare ones if these share a code. A date is
    its days since 1970 and the parts that `DateColumn` uses.

    Examples
    --------
    >>> encoder = TableEncoder().fit({"weight": [1.0, None, 3.0], "fat": ["low", "high", "low"]})
    >>> tree_features(encoder, {"weight": [2.0, None], "fat": ["LOW", "none"]})
    array([[ 2.,  1.],
           [nan, nan]])
    """
    rows = encoder.match(table)
    pairs = zip(encoder.columns_, rows.columns, strict=True)
    return np.column_stack([_values(learned, column) for learned, column in pairs])


def tree_feature_names(encoder: TableEncoder) -> list[str]:
    """Return the names of the features, those of their columns but for parts of dates."""
    return [name for column in encoder.columns_ for name in _names(column)]


def unreadable_rows(encoder: TableEncoder, table: Any) -> NDArray[np.bool_]:
    """Return which rows (n,) are out of scope: a number far from the train rows, a new category.

    Trees would score such a row as if it had the farthest known number, or a missing category.
    """
    rows = encoder.match(table)
    return np.asarray(encoder.is_far(rows) | encoder.is_unseen(rows))


def category_places(encoder: TableEncoder) -> list[int]:
    """Return the positions of the features that are categories."""
    is_category = [_is_category(column) for column in encoder.columns_ for _ in _names(column)]
    return np.flatnonzero(is_category).tolist()


def _names(column: Any) -> tuple[str, ...]:
    return column.numbers if isinstance(column, DateColumn) else (column.name,)


def _values(learned: Any, column: Column) -> FloatArray:
    if isinstance(learned, DateColumn):
        return learned.read_numbers(column)
    return np.asarray(_codes(learned, column) if _is_category(learned) else column)


def _is_category(column: Any) -> bool:
    return isinstance(column, CategoryColumn)


def _codes(learned: Any, column: Column) -> FloatArray:
    codes = learned.codes(column).astype(np.float64)
    codes[codes < 0] = len(learned.categories) if learned.missing else np.nan
    return np.asarray(codes)
