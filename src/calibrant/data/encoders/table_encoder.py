"""Encoding of tables as features, fitted on the train rows only."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.category_column import CategoryColumn
from calibrant.data.encoders.category_rules import CategoryRules
from calibrant.data.encoders.column_warning import ColumnWarning
from calibrant.data.encoders.date_column import DateColumn
from calibrant.data.encoders.number_column import NumberColumn
from calibrant.data.encoders.number_format import PLAIN
from calibrant.data.encoders.table_columns import (
    Column,
    Table,
    as_table,
    format_numbers,
    is_date,
    is_number,
)
from calibrant.data.encoders.table_features import EncodedColumn, TableFeatures
from calibrant.data.encoders.text_reading import ReadingOptions, read_as, read_texts
from calibrant.errors import InputError, NotFitted
from calibrant.inputs import FloatArray

FORMAT = 2
"""Format of a saved encoder with dates or texts that are numbers; without these it is 1."""

_MANY, _CLOSE = 100, 4  # minimum rows, and largest ratio of range to rows, of a row counter

_KINDS: dict[str, type[EncodedColumn]] = {
    "number": NumberColumn,
    "category": CategoryColumn,
    "date": DateColumn,
}


@dataclass(frozen=True)
class MatchedTable(Table):
    """A table with the columns of a fitted encoder, in its order and of its kinds."""

    learned: tuple[EncodedColumn, ...] = ()  # the columns of the encoder


class TableEncoder:
    """Encode a table as float32 features, with statistics of the train rows.

    Numbers and booleans are imputed with the train mean and standardised, with an indicator feature
    if train values were missing (`NumberColumn`); `is_far` flags rows with a number far from the
    train rows. Dates and times become standardised days, and their weekday, month and hour as
    points of a circle (`DateColumn`). Text becomes one-hot categories after clean-up
    (`CategoryColumn`, `CategoryRules`), unless it is certain to be dates, or numbers written with
    decimal commas, thousands separators, currency or percent signs, or many different fractions.
    Texts like "12", and a few like "4.05", stay categories, because their type was chosen. A column
    that is mostly numbers or dates, but not only, and one that may be read in two ways, raise
    `InputError`, as do infinite numbers, ids and free text.

    Only `fit` learns: pass it the train rows only, so that the steer, calibrate and test rows do
    not leak into the features. Columns are matched by name, so `transform` accepts any order; a
    missing column raises `InputError`, and columns unknown to `fit` are ignored. Tables without
    names (arrays, lists of rows, tables named 0, 1, ...) are matched by position and must have the
    same number of columns.

    Labels are not used, so target leakage is not detected: exclude leaking columns with `drop`.
    A warning is issued for a column that counts the rows; other numeric ids are not detected.

    Parameters
    ----------
    clean : for columns, a mapping from spellings to categories:
        `{"Item_Fat_Content": {"LF": "Low Fat", "reg": "Regular"}}`; None for a missing value
    categories : columns to treat as categories although they contain numbers, such as a year or a
        code, or a different text in nearly every row
    drop : columns to exclude
    max_categories : number of categories of a column with their own feature; rarer ones share one
    fold_case : whether to ignore letter case in categories
    decimal : the decimal mark of numbers in texts, "." or ",", for columns that leave it open
    missing : words for a missing value in any column, besides the usual ones like "n/a" in columns
        of numbers and dates
    dates : "dmy" (day first) or "mdy" (month first), for columns of dates that leave it open

    Attributes
    ----------
    columns_ : fitted columns
    columns_in_ : names of all columns seen by `fit`, including dropped ones
    named_ : whether these names come from the table

    Examples
    --------
    >>> train = {"weight": [1.0, None, 3.0], "fat": ["Low Fat", "LF", "reg"]}
    >>> encoder = TableEncoder(clean={"fat": {"LF": "Low Fat"}}).fit(train)
    >>> encoder.get_feature_names_out().tolist()
    ['weight', 'weight missing', 'fat=Low Fat', 'fat=reg']
    >>> encoder.transform([{"fat": "low fat", "weight": 2.0}])
    array([[0., 0., 1., 0.]], dtype=float32)
    >>> prices = TableEncoder().fit({"price": ["€ 4,50", "1.234,00 €", "n/a"]})
    >>> prices.transform({"price": ["619,25", "4,50 €"]})[:, 0].round(6) + 0.0
    array([ 0., -1.], dtype=float32)
    """

    def __init__(
        self,
        *,
        clean: Mapping[str, Mapping[str, str | None]] | None = None,
        categories: Sequence[str] = (),
        drop: Sequence[str] = (),
        max_categories: int = 50,
        fold_case: bool = True,
        decimal: str | None = None,
        missing: Sequence[str] = (),
        dates: str | None = None,
    ) -> None:
        self.clean = clean
        self.categories = categories
        self.drop = drop
        self.max_categories = max_categories
        self.fold_case = fold_case
        self.decimal = decimal
        self.missing = missing
        self.dates = dates

    def fit(self, table: Any) -> Self:
        """Learn means, scales and categories of the train rows, and how texts are written."""
        rows = self.read(table)
        self._check_options(rows)
        learned = tuple(
            self._learned(name, column, rows.formats or {})
            for name, column in zip(rows.names, rows.columns, strict=True)
            if column is not None
        )
        if not learned:
            raise InputError("drop excludes all columns of X: keep at least one.")
        self._set_fitted(learned, rows.names, named=rows.named)
        return self

    def read(self, table: Any, *, name: str = "X") -> Table:
        """Return the columns of train rows, with texts that are numbers or dates as such."""
        rows = as_table(table, name=name, wanted=lambda _, key: key not in self._named("drop"))
        if rows.formats is not None:
            return rows
        options = ReadingOptions.check(self.decimal, self.missing, self.dates)
        cleaned = self.clean if isinstance(self.clean, Mapping) else ()
        return read_texts(rows, options, keep={*self._named("categories"), *cleaned})

    def transform(self, table: Any) -> NDArray[np.float32]:
        """Return the features (n, d) of rows."""
        rows = self.match(table)
        return self._encoding.encode(rows.columns, len(rows))

    def is_far(self, table: Any) -> NDArray[np.bool_]:
        """Return which rows (n,) have a number far from the train rows, see `NumberColumn`."""
        rows = self.match(table)
        return self._encoding.is_far(rows.columns, len(rows))

    def is_unseen(self, table: Any) -> NDArray[np.bool_]:
        """Return which rows (n,) have a category that the train rows lack, see `CategoryColumn`."""
        rows = self.match(table)
        unseen = np.zeros(len(rows), dtype=np.bool_)
        for learned, column in zip(self.columns_, rows.columns, strict=True):
            if isinstance(learned, CategoryColumn):
                unseen |= learned.is_unseen(column)
        return unseen

    def match(self, table: Any, *, name: str = "X") -> MatchedTable:
        """Return the fitted columns of a table, in their order; other columns are left out."""
        self._check_fitted()
        if isinstance(table, MatchedTable) and table.learned is self.columns_:
            return table
        rows = as_table(table, name=name, wanted=self.wants)
        self._check_columns(rows)
        place = {name: i for i, name in enumerate(rows.names if self.named_ else self.columns_in_)}
        columns = tuple(
            _as_learned(column, rows.columns[place[column.name]]) for column in self.columns_
        )
        names = tuple(column.name for column in self.columns_)
        return MatchedTable(names, columns, rows.n, rows.named, learned=self.columns_)

    @property
    def has_limits(self) -> bool:
        """Whether any numeric column has limits for `is_far`."""
        return self._encoding.has_limits

    def wants(self, place: int, name: str) -> bool:
        """Return whether a column is read: not dropped and, after `fit`, known."""
        if not hasattr(self, "columns_"):
            return name not in self._named("drop")
        return (name if self.named_ else f"x{place}") in self._known

    def get_feature_names_out(self) -> NDArray[Any]:
        """Return the names of the features."""
        self._check_fitted()
        return np.array(self._encoding.names, dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """Return options and fitted state as JSON values."""
        self._check_fitted()
        options = {
            "clean": None
            if self.clean is None
            else {column: dict(renames) for column, renames in self.clean.items()},
            "categories": list(self.categories),
            "drop": list(self.drop),
            "max_categories": int(self.max_categories),
            "fold_case": bool(self.fold_case),
        }
        reading = {"decimal": self.decimal, "missing": list(self.missing), "dates": self.dates}
        reading = {name: value for name, value in reading.items() if value}
        plain = not reading and all(is_plain(column) for column in self.columns_)
        return {
            "format": 1 if plain else FORMAT,
            "kind": "table",
            "options": options | reading,
            "columns_in": list(self.columns_in_),
            "named": self.named_,
            "columns": [column.to_dict() for column in self.columns_],
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> TableEncoder:
        """Rebuild from `to_dict`."""
        if saved.get("format") not in range(1, FORMAT + 1) or saved.get("kind") != "table":
            raise InputError(
                f"this is not a table encoder of format 1 to {FORMAT}: got format "
                f"{saved.get('format')!r} and kind {saved.get('kind')!r}."
            )
        encoder = cls(**saved["options"])
        encoder._set_fitted(
            tuple(_KINDS[c["kind"]].from_dict(c) for c in saved["columns"]),
            tuple(str(name) for name in saved["columns_in"]),
            named=bool(saved["named"]),
        )
        return encoder

    def _set_fitted(
        self, columns: tuple[EncodedColumn, ...], columns_in: tuple[str, ...], *, named: bool
    ) -> None:
        """Set the fitted columns, and what is derived from them once."""
        self.columns_ = columns
        self.columns_in_ = columns_in
        self.named_ = named
        self._known = {column.name for column in columns}
        self._encoding = TableFeatures(columns)

    def _named(self, option: str) -> tuple[Any, ...]:
        """Return the columns listed in an option."""
        columns = getattr(self, option)
        if isinstance(columns, str) or not isinstance(columns, Iterable):
            raise InputError(f"{option} must be a list of columns, got {columns!r}: write [...].")
        return tuple(columns)

    def _learned(self, name: str, column: Column, formats: Mapping[str, Any]) -> EncodedColumn:
        chosen = name in self._named("categories")
        if is_date(column):
            if chosen:
                raise InputError(
                    f"categories lists the column {name!r}, which contains dates: remove it from "
                    "categories, or convert it to text."
                )
            return DateColumn.learn(name, column, formats.get(name))
        if is_number(column) and not chosen:
            _warn_about_counter(name, column)
            return NumberColumn.learn(name, column, formats.get(name, PLAIN))
        words = format_numbers(column) if is_number(column) else column
        renames = (self.clean or {}).get(name, {})
        if isinstance(renames, Mapping):
            renames = {word.strip(): None for word in self.missing} | dict(renames)
        return CategoryColumn.learn(
            name,
            words,
            rules=CategoryRules.from_renames(renames, column=name, fold_case=bool(self.fold_case)),
            max_categories=int(self.max_categories),
            chosen=chosen,
        )

    def _check_options(self, rows: Table) -> None:
        for option in ("categories", "drop"):
            _reject_unknown(option, self._named(option), rows.names)
        if not isinstance(self.clean, Mapping | None):
            raise InputError(
                "clean must be a dict from columns to spellings such as "
                f"{{'fat': {{'LF': 'Low Fat'}}}}, got {self.clean!r}."
            )
        _reject_unknown("clean", self.clean or (), rows.names)
        limit = self.max_categories
        if not isinstance(limit, Integral) or isinstance(limit, bool) or limit < 1:
            raise InputError(f"max_categories must be a whole number of at least 1, got {limit!r}.")
        for name, column in zip(rows.names, rows.columns, strict=True):
            is_cleaned = name in (self.clean or {}) and name not in self._named("categories")
            if is_cleaned and isinstance(column, np.ndarray):
                held = "numbers: add it to categories" if is_number(column) else "dates: convert it"
                raise InputError(
                    f"clean lists the column {name!r}, which contains {held}, or remove it from "
                    "clean."
                )

    def _check_fitted(self) -> None:
        if not hasattr(self, "columns_"):
            raise NotFitted("this TableEncoder is not fitted yet: call fit with the train rows.")

    def _check_columns(self, rows: Table) -> None:
        known = self.columns_in_
        if len(rows.names) != len(known) and not (rows.named and self.named_):
            raise InputError(
                f"X has {len(rows.names)} features, but TableEncoder is expecting {len(known)} "
                "features as input: use the same columns as in fit."
            )
        if self.named_ and not rows.named:
            raise InputError(
                f"X has no column names, but the encoder was fitted with names ({known[0]!r}, "
                "...): give a table with column names."
            )
        missing = [c.name for c in self.columns_ if self.named_ and c.name not in set(rows.names)]
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise InputError(
                f"X lacks the column {missing[0]!r}{more}, which the encoder was fitted with: add "
                "it, with None for missing values."
            )


def is_plain(column: EncodedColumn) -> bool:
    """Return whether texts of a column are read as they always were: as in Python."""
    return isinstance(column, CategoryColumn) or (
        isinstance(column, NumberColumn) and column.format == PLAIN
    )


def _as_learned(learned: EncodedColumn, column: Column) -> Column:
    """Return a column of the type in `fit`; texts are read as they were written there."""
    if not isinstance(learned, CategoryColumn):
        return read_as(learned.name, column, learned.format)
    if is_date(column):
        raise InputError(
            f"column {learned.name!r} was text in fit, but contains dates: convert it to text."
        )
    return format_numbers(column) if is_number(column) else column


def _reject_unknown(option: str, listed: Iterable[Any], names: Sequence[str]) -> None:
    unknown = [name for name in listed if name not in names]
    if unknown:
        shown = ", ".join(repr(name) for name in names[:8])
        raise InputError(
            f"{option} lists {unknown[0]!r}, which is not a column of the table: {shown}."
        )


def is_counter(values: FloatArray) -> bool:
    """Return whether numbers are dense, unique integers, which look like row numbers.

    Examples
    --------
    >>> is_counter(np.arange(100.0)), is_counter(np.arange(100.0) % 7)
    (True, False)
    """
    if len(values) < _MANY or not np.isfinite(values).all():
        return False
    close = values.max() - values.min() < _CLOSE * len(values)
    whole = (values == np.floor(values)).all()
    return bool(close and whole and len(np.unique(values)) == len(values))


def _warn_about_counter(name: str, values: FloatArray) -> None:
    """Warn about a column that looks like row numbers."""
    if is_counter(values):
        first, last = float(values.min()), float(values.max())
        warnings.warn(
            ColumnWarning(
                f"column {name!r} looks like a row number ({len(values):,} unique integers from "
                f"{first:.0f} to {last:.0f}), which does not generalise to new rows: if it is an "
                "id",
                name,
            ),
            stacklevel=5,
        )
