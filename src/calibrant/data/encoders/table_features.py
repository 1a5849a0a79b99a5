"""The features of a table: names, positions and values, for all columns together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.category_column import CategoryColumn
from calibrant.data.encoders.date_column import DateColumn
from calibrant.data.encoders.number_column import NumberColumn, NumberColumns
from calibrant.data.encoders.table_columns import Column
from calibrant.inputs import FloatArray

EncodedColumn = NumberColumn | CategoryColumn | DateColumn

_BLOCK = 8192
"""Rows that are encoded together, so that intermediate arrays stay small."""


class TableFeatures:
    """Encode matched columns; what depends on the fitted columns alone is computed once.

    Parameters
    ----------
    columns : the fitted columns

    Examples
    --------
    >>> import pyarrow as pa
    >>> weight = NumberColumn.learn("weight", np.array([1.0, 3.0]))
    >>> fat = CategoryColumn.learn("fat", pa.array(["low", "high"], pa.large_string()))
    >>> features = TableFeatures((weight, fat))
    >>> features.names
    ['weight', 'fat=high', 'fat=low']
    >>> features.encode([np.array([2.0]), pa.array(["low"])], 1)
    array([[0., 0., 1.]], dtype=float32)
    """

    def __init__(self, columns: Sequence[EncodedColumn]) -> None:
        self.names = [feature for column in columns for feature in column.features]
        widths = [len(column.features) for column in columns]
        firsts = np.cumsum([0, *widths]).tolist()
        numbers = [(i, c) for i, c in enumerate(columns) if isinstance(c, NumberColumn)]
        self._together = NumberColumns([column for _, column in numbers])
        self._numbers = [i for i, _ in numbers]
        self._features_of_numbers = [firsts[i] for i in self._numbers]
        masked = [(k, firsts[i] + 1) for k, (i, column) in enumerate(numbers) if column.missing]
        self._masked = [k for k, _ in masked]
        self._features_of_masks = [feature for _, feature in masked]
        self._categories = [(i, c) for i, c in enumerate(columns) if isinstance(c, CategoryColumn)]
        self._firsts = np.array([[firsts[i]] for i, _ in self._categories])
        self._dates = [
            (i, column, slice(firsts[i], firsts[i + 1]))
            for i, column in enumerate(columns)
            if isinstance(column, DateColumn)
        ]
        self.has_limits = self._together.has_limits

    def encode(self, columns: Sequence[Column], n: int) -> NDArray[np.float32]:
        """Return the features (n, d) of rows; columns must be of the kinds in `fit`."""
        out = np.zeros((n, len(self.names)), dtype=np.float32)
        for start in range(0, n, _BLOCK):
            stop = min(start + _BLOCK, n)
            block = [column[start:stop] for column in columns] if n > _BLOCK else columns
            self._encode_block(block, out[start:stop])
        return out

    def is_far(self, columns: Sequence[Column], n: int) -> NDArray[np.bool_]:
        """Return which rows (n,) have a number far from the train rows."""
        if not self.has_limits:
            return np.zeros(n, dtype=np.bool_)
        return self._together.is_far(self._stack_numbers(columns))

    def _encode_block(self, columns: Sequence[Column], out: NDArray[np.float32]) -> None:
        if self._numbers:
            z, missing = self._together.standardise(self._stack_numbers(columns))
            out[:, self._features_of_numbers] = z.T
            if self._masked:
                out[:, self._features_of_masks] = missing[self._masked].T
        if self._categories:
            codes = np.array([column.codes(columns[i]) for i, column in self._categories])
            known = codes >= 0
            rows = np.broadcast_to(np.arange(len(out)), codes.shape)
            out[rows[known], (codes + self._firsts)[known]] = 1.0
        for i, column, features in self._dates:
            out[:, features] = column.encode(columns[i])

    def _stack_numbers(self, columns: Sequence[Column]) -> FloatArray:
        return np.array([columns[i] for i in self._numbers], dtype=np.float64)
