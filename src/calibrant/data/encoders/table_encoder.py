"""Tables to features: what is learned is learned from the train rows alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.encoders.category_column import CategoryColumn
from calibrant.data.encoders.category_rules import CategoryRules
from calibrant.data.encoders.number_column import NumberColumn
from calibrant.data.encoders.table_columns import Column, Table, as_table, is_number, number_words
from calibrant.errors import InputError, NotFitted
from calibrant.inputs import FloatArray

__all__ = ["TableEncoder"]

FORMAT = 1
_MANY, _CLOSE = 100, 4  # fewer rows may count by chance; and of any four numbers one is there

EncodedColumn = NumberColumn | CategoryColumn
_KINDS: dict[str, type[NumberColumn] | type[CategoryColumn]] = {
    "number": NumberColumn,
    "category": CategoryColumn,
}


class TableEncoder:
    """Turn a table into float32 features, with statistics of the rows it was fitted on.

    Numbers and booleans are filled with the train mean and standardised with train statistics, with
    a feature for "missing" where train rows lacked values (`NumberColumn`); rows with a number far
    from all train rows are known by `is_far`. Text becomes one-hot
    categories after clean-up (`CategoryColumn`, `CategoryRules`). Dates, infinite numbers, ids and
    free text are refused, each in a sentence that says what to do.

    `fit` learns, `transform` never does: give `fit` the train rows only, and the steer, calibrate
    and test rows cannot leak into the features. Columns are found by name, so their order does
    not matter at `transform`; a missing one is refused and columns that `fit` never saw are left
    out. Tables without names (arrays, lists of rows, tables named 0, 1, ...) go by position and
    must have the same number of columns.

    It does not look at labels, and it cannot see that a column was made from them: leave such a
    column out with `drop`. Of ids made of numbers it warns where they count the rows; others look
    like any number.

    Parameters
    ----------
    clean : by column, which spellings mean which category:
        `{"Item_Fat_Content": {"LF": "Low Fat", "reg": "Regular"}}`; None for a missing value
    categories : columns that are categories although they hold numbers, such as a year or a code,
        or although they hold another text in nearly every row
    drop : columns to leave out
    max_categories : how many categories of a column get a feature of their own; the rarer ones
        share one
    fold_case : whether upper and lower case make no difference between categories

    Attributes
    ----------
    columns_ : what was learned, column by column
    columns_in_ : names of all columns that the fitted table had, dropped ones too
    named_ : whether these names are the table's own

    Examples
    --------
    >>> train = {"weight": [1.0, None, 3.0], "fat": ["Low Fat", "LF", "reg"]}
    >>> encoder = TableEncoder(clean={"fat": {"LF": "Low Fat"}}).fit(train)
    >>> encoder.get_feature_names_out().tolist()
    ['weight', 'weight missing', 'fat=Low Fat', 'fat=reg']
    >>> encoder.transform([{"fat": "low fat", "weight": 2.0}])
    array([[0., 0., 1., 0.]], dtype=float32)
    """

    def __init__(
        self,
        *,
        clean: Mapping[str, Mapping[str, str | None]] | None = None,
        categories: Sequence[str] = (),
        drop: Sequence[str] = (),
        max_categories: int = 50,
        fold_case: bool = True,
    ) -> None:
        self.clean = clean
        self.categories = categories
        self.drop = drop
        self.max_categories = max_categories
        self.fold_case = fold_case

    def fit(self, table: Any) -> Self:
        """Learn from the train rows: means, scales, categories."""
        rows = as_table(table, wanted=lambda _, name: name not in self._named("drop"))
        self._check_options(rows)
        learned = tuple(
            self._learned(name, column)
            for name, column in zip(rows.names, rows.columns, strict=True)
            if column is not None
        )
        if not learned:
            raise InputError("drop leaves no column of X: keep at least one.")
        self.columns_: tuple[EncodedColumn, ...] = learned
        self.columns_in_ = rows.names
        self.named_ = rows.named
        return self

    def transform(self, table: Any) -> NDArray[np.float32]:
        """Return the features (n, d) of any rows; nothing is learned from them."""
        pairs, _ = self._matched(table)
        return np.concatenate([_encoded(learned, column) for learned, column in pairs], axis=1)

    def is_far(self, table: Any) -> NDArray[np.bool_]:
        """Return which rows (n,) hold a number far from all train rows, see `NumberColumn`."""
        pairs, n = self._matched(table)
        far = np.zeros(n, dtype=np.bool_)
        for learned, column in pairs:
            if isinstance(learned, NumberColumn) and is_number(column):
                far |= learned.is_far(column)
        return far

    @property
    def has_limits(self) -> bool:
        """Whether `is_far` could say so of a row: some column of numbers has limits."""
        return any(getattr(column, "most", None) is not None for column in self.columns_)

    def wants(self, place: int, name: str) -> bool:
        """Say whether a column is read: all that are not dropped, after `fit` those it read."""
        if not hasattr(self, "columns_"):
            return name not in self._named("drop")
        return (name if self.named_ else f"x{place}") in self._by_name

    def get_feature_names_out(self) -> NDArray[Any]:
        """Return the names of the features."""
        self._check_fitted()
        return np.array([f for column in self.columns_ for f in column.features], dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """Return options and what was learned as JSON."""
        self._check_fitted()
        return {
            "format": FORMAT,
            "kind": "table",
            "options": {
                "clean": None
                if self.clean is None
                else {column: dict(renames) for column, renames in self.clean.items()},
                "categories": list(self.categories),
                "drop": list(self.drop),
                "max_categories": int(self.max_categories),
                "fold_case": bool(self.fold_case),
            },
            "columns_in": list(self.columns_in_),
            "named": self.named_,
            "columns": [column.to_dict() for column in self.columns_],
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> TableEncoder:
        """Rebuild from `to_dict`."""
        if saved.get("format") != FORMAT or saved.get("kind") != "table":
            raise InputError(
                f"this is not a table encoder of format {FORMAT}: got format "
                f"{saved.get('format')!r} and kind {saved.get('kind')!r}."
            )
        made = cls(**saved["options"])
        made.columns_ = tuple(_KINDS[c["kind"]].from_dict(c) for c in saved["columns"])
        made.columns_in_ = tuple(str(name) for name in saved["columns_in"])
        made.named_ = bool(saved["named"])
        return made

    def _matched(self, table: Any) -> tuple[list[tuple[EncodedColumn, Column]], int]:
        """Return what was learned beside the columns of any rows, and the number of rows."""
        self._check_fitted()
        rows = as_table(table, wanted=self.wants)
        self._check_columns(rows)
        place = {name: i for i, name in enumerate(rows.names)}
        known, pairs = self._by_name, []
        for i, name in enumerate(self.columns_in_):
            if name in known:  # else it was dropped
                pairs.append((known[name], rows.columns[place[name] if self.named_ else i]))
        return pairs, len(rows)

    @property
    def _by_name(self) -> dict[str, EncodedColumn]:
        return {column.name: column for column in self.columns_}

    def _named(self, option: str) -> tuple[Any, ...]:
        """Return the columns that an option lists."""
        given = getattr(self, option)
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InputError(f"{option} must be a list of columns, got {given!r}: write [...].")
        return tuple(given)

    def _learned(self, name: str, column: Column) -> EncodedColumn:
        chosen = name in self._named("categories")
        if is_number(column) and not chosen:
            _warn_of_counters(name, column)
            return NumberColumn.learn(name, column)
        words = number_words(column) if is_number(column) else column
        renames = (self.clean or {}).get(name, {})
        return CategoryColumn.learn(
            name,
            words,
            rules=CategoryRules.of(renames, column=name, fold_case=bool(self.fold_case)),
            max_categories=int(self.max_categories),
            chosen=chosen,
        )

    def _check_options(self, rows: Table) -> None:
        for option in ("categories", "drop"):
            _refuse_unknown(option, self._named(option), rows.names)
        if not isinstance(self.clean, Mapping | None):
            raise InputError(
                "clean must be a dict from columns to spellings such as "
                f"{{'fat': {{'LF': 'Low Fat'}}}}, got {self.clean!r}."
            )
        _refuse_unknown("clean", self.clean or (), rows.names)
        most = self.max_categories
        if not isinstance(most, Integral) or isinstance(most, bool) or most < 1:
            raise InputError(f"max_categories must be a whole number of at least 1, got {most!r}.")
        for name, column in zip(rows.names, rows.columns, strict=True):
            asked = name in (self.clean or {}) and name not in self._named("categories")
            if asked and is_number(column):
                raise InputError(
                    f"clean names the column {name!r}, which holds numbers: name it in categories "
                    "as well, or take it out of clean."
                )

    def _check_fitted(self) -> None:
        if not hasattr(self, "columns_"):
            raise NotFitted(
                "this TableEncoder has not learned anything yet: call fit with the train rows."
            )

    def _check_columns(self, rows: Table) -> None:
        known = self.columns_in_
        if len(rows.names) != len(known) and not (rows.named and self.named_):
            raise InputError(
                f"X has {len(rows.names)} features, but TableEncoder is expecting {len(known)} "
                "features as input: give the same columns as at fit."
            )
        if self.named_ and not rows.named:
            raise InputError(
                f"X has no column names, but the encoder knows its columns by name ({known[0]!r}, "
                "...): give a table with names, so that none is mistaken for another."
            )
        lacking = [c.name for c in self.columns_ if self.named_ and c.name not in set(rows.names)]
        if lacking:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            raise InputError(
                f"X lacks the column {lacking[0]!r}{more}, which the encoder was fitted with: add "
                "it, with None where a value is missing."
            )


def _encoded(learned: EncodedColumn, column: Column) -> NDArray[np.float32]:
    """Encode a column; its type must be the one that was fitted, or all values missing."""
    if isinstance(learned, NumberColumn):
        if is_number(column):
            return learned.encode(column)
        if column.null_count == len(column):
            return learned.encode(np.full(len(column), np.nan))
        text = next(v for v in column.to_pylist() if v is not None)
        raise InputError(
            f"column {learned.name!r} held numbers at fit, but now it holds text such as "
            f"{text[:40]!r}: turn it into numbers first."
        )
    return learned.encode(_as_words(column))


def _as_words(column: Column) -> pa.Array:
    return number_words(column) if is_number(column) else column


def _refuse_unknown(option: str, given: Iterable[Any], names: Sequence[str]) -> None:
    unknown = [name for name in given if name not in names]
    if unknown:
        shown = ", ".join(repr(name) for name in names[:8])
        raise InputError(
            f"{option} names {unknown[0]!r}, which is no column of the table: {shown}."
        )


def _warn_of_counters(name: str, values: FloatArray) -> None:
    """Warn of whole numbers that stand close and never twice: rows that somebody numbered."""
    if len(values) < _MANY or not np.isfinite(values).all():
        return
    first, last = float(values.min()), float(values.max())
    close = last - first < _CLOSE * len(values)
    if close and (values == np.floor(values)).all() and len(np.unique(values)) == len(values):
        warnings.warn(
            f"column {name!r} looks like a count of the rows ({len(values):,} whole numbers from "
            f"{first:.0f} to {last:.0f}, none of them twice): if it is an id, leave it out with "
            f"drop=[{name!r}], for a new row's says nothing about it.",
            UserWarning,
            stacklevel=5,
        )
