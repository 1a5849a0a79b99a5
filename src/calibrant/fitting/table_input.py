"""The part of a classifier that reads tables: encoder, columns and warnings about them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.data.encoders.column_warning import ColumnWarning
from calibrant.data.encoders.table_columns import Table, as_table
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.fitting.row_classifier import RowClassifier
from calibrant.fitting.target_leakage import LEAKAGE, find_leaking_columns
from calibrant.inputs import IntArray

if TYPE_CHECKING:
    from sklearn.utils import Tags


class TableInput(RowClassifier):
    """A `RowClassifier` of tables; its parameters here are those of `TableEncoder`."""

    clean: Mapping[str, Mapping[str, str | None]] | None
    categories: Sequence[str]
    drop: Sequence[str]
    max_categories: int
    fold_case: bool
    decimal: str | None
    missing: Sequence[str]
    dates: str | None
    n_features_in_: int

    def _new_encoder(self) -> TableEncoder:
        return TableEncoder(
            clean=self.clean,
            categories=self.categories,
            drop=self.drop,
            max_categories=self.max_categories,
            fold_case=self.fold_case,
            decimal=self.decimal,
            missing=self.missing,
            dates=self.dates,
        )

    def _read_input(self, X: Any, name: str, encoder: TableEncoder) -> Table:  # noqa: N803
        if hasattr(encoder, "columns_"):
            return encoder.match(X, name=name)
        if name == "X":
            return encoder.read(X, name=name)
        return as_table(X, name=name, wanted=encoder.wants)  # texts are read as those of X

    def _check_leakage(self, rows: Table, labels: IntArray) -> None:
        leaking = find_leaking_columns(rows, labels)
        if leaking:
            warnings.warn(
                ColumnWarning(
                    f"{LEAKAGE}: the column {leaking[0]!r} alone separates the classes without "
                    "error; if it was derived from the labels",
                    leaking[0],
                ),
                stacklevel=3,
            )

    def _record_columns(self, rows: Table) -> None:
        self.n_features_in_ = len(rows.names)
        self.__dict__.pop("feature_names_in_", None)
        if rows.named:
            self.feature_names_in_ = np.array(rows.names, dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
