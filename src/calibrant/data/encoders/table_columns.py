"""Conversion of tables to named columns of numbers, dates or text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from calibrant.data.encoders.date_format import DateArray, DateFormat
from calibrant.data.encoders.number_format import NumberFormat
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

Column = Any
"""Numbers (float64, NaN is missing), dates (datetime64[us], NaT is missing) or texts (Arrow)."""

Format = NumberFormat | DateFormat
"""How the numbers or dates of a column are written as text."""

_SHORT = 64
"""Rows up to which a column is converted as Python values, which then is faster."""

_UNREADABLE = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    OverflowError,
    TypeError,
    UnicodeEncodeError,
)


@dataclass(frozen=True)
class Table:
    """Columns of equal length.

    Parameters
    ----------
    names : column names; x0, x1, ... if the input has none
    columns : numbers, dates or texts (see `Column`), or None if not requested
    n : number of rows
    named : whether the names come from the input
    formats : how the numbers and dates of columns are written as text, where that is not as in
        Python; None if texts were not yet looked at
    """

    names: tuple[str, ...]
    columns: tuple[Column | None, ...]
    n: int
    named: bool
    formats: Mapping[str, Format] | None = None

    def __len__(self) -> int:
        return self.n

    def take(self, rows: NDArray[np.int64]) -> Table:
        """Return the rows at these positions."""
        columns = tuple(_take_values(column, rows) for column in self.columns)
        return Table(self.names, columns, len(rows), self.named, self.formats)

    def select(self, names: Sequence[str]) -> Table:
        """Return the columns with these names."""
        places = [self.names.index(name) for name in names]
        columns = tuple(self.columns[place] for place in places)
        return Table(tuple(names), columns, self.n, self.named, self.formats)


def _take_values(column: Column | None, rows: NDArray[np.int64]) -> Column | None:
    if column is None:
        return None
    return column[rows] if isinstance(column, np.ndarray) else column.take(pa.array(rows))


def is_number(column: Column) -> bool:
    """Return whether a column is numeric."""
    return isinstance(column, np.ndarray) and column.dtype.kind == "f"


def is_date(column: Column) -> bool:
    """Return whether a column has dates or times."""
    return isinstance(column, np.ndarray) and column.dtype.kind == "M"


def is_text(column: Column) -> bool:
    """Return whether a column has texts."""
    return isinstance(column, pa.Array)


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, pandas' NA or NaT."""
    if type(value).__name__ in ("NoneType", "NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def as_table(
    values: Any, *, name: str = "X", wanted: Callable[[int, str], bool] | None = None
) -> Table:
    """Convert a table to columns; types are those of the values, see `read_texts` for texts.

    Examples
    --------
    >>> table = as_table({"weight": [9.3, None], "fat": ["Low Fat", "reg"]})
    >>> table.names
    ('weight', 'fat')
    >>> table.columns[0]
    array([9.3, nan])
    """
    if isinstance(values, Table):
        return values
    _reject_non_table(values, name)
    pairs, named = _split_columns(values, name)
    names = tuple(str(key) for key, _ in pairs)
    if not names:
        n = len(values) if hasattr(values, "__len__") else 0
        raise InputError(
            f"Found array with 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required: "
            f"provide at least one column in {name}."
        )
    if len(set(names)) < len(names):
        twice = next(key for i, key in enumerate(names) if key in names[:i])
        raise InputError(f"{name} has two columns {twice!r}: rename or drop one of them.")
    n = _length([(key, len(column)) for key, (_, column) in zip(names, pairs, strict=True)], name)
    is_wanted = [wanted is None or wanted(place, key) for place, key in enumerate(names)]
    columns = tuple(
        as_column(values, name=f"{name} column '{key}'") if include else None
        for (_, values), key, include in zip(pairs, names, is_wanted, strict=True)
    )
    return Table(names, columns, n, named)


def _length(lengths: list[tuple[str, int]], name: str) -> int:
    """Return the common number of rows of all columns."""
    first, n = lengths[0]
    for key, length in lengths:
        if length != n:
            raise InputError(
                f"{name} must have columns of equal length, got {n} rows of {first!r} and "
                f"{length} of {key!r}."
            )
    if n == 0:
        raise InputError(f"{name} has no rows: at least one is needed.")
    return n


def as_column(values: Any, *, name: str) -> Column:
    """Convert a column to numbers, dates or text; reject infinities and mixed types."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return _finite(values.astype(np.float64, copy=False), name)
    plain = _from_plain_values(_as_short_list(values))
    if plain is not None:
        return _finite(plain, name) if is_number(plain) else plain
    array = _arrow(values, name)
    if pt.is_dictionary(array.type):  # categorical by type, also if the categories are numbers
        return _as_words(array.dictionary, name).take(array.indices)
    if _numeric(array.type):
        return _finite(_float64(array), name)
    if pt.is_date(array.type) or pt.is_timestamp(array.type) or pt.is_time(array.type):
        return _as_dates(array)
    return _as_words(array, name)


def _as_short_list(values: Any) -> list[Any]:
    """Return a short list or Arrow column as a list, and an empty one for anything else."""
    if isinstance(values, list):
        return values if len(values) <= _SHORT else []
    if isinstance(values, pa.Array | pa.ChunkedArray) and len(values) <= _SHORT:
        return [] if pt.is_dictionary(values.type) else list(values.to_pylist())
    return []


def _from_plain_values(values: list[Any]) -> Column | None:
    """Convert a few of Python's own numbers or texts, which Arrow does more slowly."""
    kinds = set(map(type, values)) - {type(None)}
    try:
        if kinds == {str}:
            return pa.array(values, pa.large_string())
        if kinds and (kinds <= {int, float} or kinds == {bool}):
            return np.array(values, dtype=np.float64)  # None becomes NaN
    except (OverflowError, UnicodeEncodeError):
        pass  # reported below
    return None


def _reject_non_table(values: Any, name: str) -> None:
    """Reject inputs that are not a table."""
    if values is None or isinstance(values, str | bytes):
        raise InputError(
            f"{name} must be a table, got {type(values).__name__}: give a DataFrame, a dict of "
            "columns, a list of dicts or a 2-D array."
        )
    if isinstance(values, list | tuple) and not values:
        raise InputError(f"{name} has no rows: at least one is needed.")
    if hasattr(values, "tocsr"):
        raise InputError(
            f"{name} is a sparse matrix, which is not supported: call .toarray() on it first."
        )


def _split_columns(values: Any, name: str) -> tuple[list[tuple[Any, Any]], bool]:
    """Return (name, column) pairs, and whether the names come from the input."""
    if hasattr(values, "iloc") and hasattr(values, "columns"):  # pandas
        pairs = [(key, values.iloc[:, i]) for i, key in enumerate(values.columns)]
        if all(isinstance(key, int | np.integer) for key, _ in pairs):
            return _number_columns([column for _, column in pairs])
        return pairs, True
    if hasattr(values, "__arrow_c_stream__") or isinstance(values, pa.RecordBatch):
        table = _arrow_table(values, name)
        return list(zip(table.column_names, table.columns, strict=True)), True
    if isinstance(values, Mapping):
        return [(key, _check_sequence(column, key, name)) for key, column in values.items()], True
    if isinstance(values, list | tuple) and values and isinstance(values[0], Mapping):
        return _from_dicts(values, name), True
    array = _as_2d_array(values, name)
    if array.dtype.names is not None:
        return [(key, array[key]) for key in array.dtype.names], True
    return _number_columns(list(array.T))


def _number_columns(columns: Iterable[Any]) -> tuple[list[tuple[Any, Any]], bool]:
    return [(f"x{i}", column) for i, column in enumerate(columns)], False


def _arrow_table(values: Any, name: str) -> pa.Table:
    if isinstance(values, pa.Table):
        return values
    try:
        return pa.table(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError):
        raise InputError(
            f"{name} must be a table, got one column ({type(values).__name__}): give a table with "
            "one named column per feature."
        ) from None


def _check_sequence(column: Any, key: Any, name: str) -> Any:
    if isinstance(column, set | frozenset):
        raise InputError(
            f"{name} column '{key}' is a set, which has no order: give its values as a list."
        )
    if isinstance(column, str | bytes) or not hasattr(column, "__len__"):
        raise InputError(
            f"{name} column '{key}' must be a list or an array of values, got {column!r}: for one "
            f"row write {{'{key}': [{column!r}]}} or a list with one dict."
        )
    return column


def _from_dicts(rows: Sequence[Any], name: str) -> list[tuple[Any, Any]]:
    keys = list(rows[0])
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping) or row.keys() != rows[0].keys():
            differing = (
                sorted(map(str, set(row) ^ set(keys))) if isinstance(row, Mapping) else [row]
            )
            raise InputError(
                f"{name} row {i} must have the same keys as row 0, but they differ in "
                f"{differing[0]!r}: use None for missing values."
            )
    return [(key, [row[key] for row in rows]) for key in keys]


def _as_2d_array(values: Any, name: str) -> NDArray[Any]:
    """Convert rows to a 2-D array; mixed rows stay objects, so that numbers do not become text."""
    if hasattr(values, "detach"):  # a torch tensor, without importing torch
        values = values.detach().cpu()
    try:
        array = np.asarray(values)
        if isinstance(values, list | tuple) and array.dtype.kind in "US":
            array = np.asarray(values, dtype=object)
    except (ValueError, TypeError):
        raise InputError(
            f"{name} cannot be read as a table: give every row the same number of values."
        ) from None
    if array.dtype.names is not None and array.ndim == 1:
        return array
    if array.ndim == 0:
        raise InputError(
            f"{name} must be a table, got {type(values).__name__}: give a DataFrame (collect a "
            "lazy one first), a dict of columns, a list of dicts or a 2-D array."
        )
    if array.ndim != 2:
        raise InputError(
            f"{name}: Expected 2D array, got {array.ndim}D array of shape {array.shape} instead. "
            "Reshape your data with .reshape(-1, 1) if it is one column, or .reshape(1, -1) if it "
            "is one row."
        )
    return array


def _arrow(values: Any, name: str) -> pa.Array:
    if hasattr(values, "to_arrow") and not isinstance(values, pa.Array):  # polars
        values = values.to_arrow()
    if isinstance(values, np.ndarray) and values.dtype.kind == "c":
        raise InputError(f"{name}: Complex data not supported, got {values.dtype}.")
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        try:
            values = pa.array(values, from_pandas=True)
        except _UNREADABLE:
            return _from_objects(values, name)
    return _combine_chunks(values)


def _combine_chunks(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Concatenate the chunks of a column."""
    if isinstance(values, pa.Array):
        return values
    if values.num_chunks == 1:
        return values.chunk(0)
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)


def _from_objects(values: Any, name: str) -> pa.Array:
    """Convert numbers of types that Arrow does not mix; reject any other mixture."""
    flat = np.asarray(values, dtype=object)
    missing = np.fromiter(map(is_missing, flat), bool, len(flat))
    kinds = sorted({type(v).__name__ for v in flat[~missing]})
    if kinds == ["str"]:
        row = next(i for i, v in enumerate(flat) if not missing[i] and not _is_unicode(v))
        raise InputError(f"{name} row {row} is not valid Unicode text: correct that value.")
    try:
        if "str" in kinds or "bool" in kinds or "bool_" in kinds:
            raise ValueError
        wide = np.full(len(flat), np.nan)
        wide[~missing] = [float(v) for v in flat[~missing]]
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{name} contains {' and '.join(kinds)}: use either numbers below 1e308 or text."
        ) from None
    return pa.array(wide)


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _numeric(kind: pa.DataType) -> bool:
    return bool(
        pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind) or pt.is_decimal(kind)
    )


def _float64(array: pa.Array) -> FloatArray:
    if pt.is_float64(array.type) and not array.null_count:
        return np.asarray(array.to_numpy())
    wide = pc.cast(array, pa.float64(), safe=False)
    return np.asarray(wide.to_numpy(zero_copy_only=False), dtype=np.float64)


def _finite(values: FloatArray, name: str) -> FloatArray:
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise InputError(
            f"{name} row {row} is {values[row]}, which is infinity: use a finite number, or None "
            "for a missing value."
        )
    return values


def _as_dates(array: pa.Array) -> DateArray:
    """Convert dates, times of any zone to UTC, and times of the day to those of the first day."""
    if pt.is_time(array.type):
        array = array.cast(pa.time64("us"), safe=False).cast(pa.int64())
    dates = array.cast(pa.timestamp("us", getattr(array.type, "tz", None)), safe=False)
    return np.asarray(dates.to_numpy(zero_copy_only=False), dtype="M8[us]")


def _as_words(array: pa.Array, name: str) -> pa.Array:
    """Convert a column to text with nulls."""
    kind = array.type
    if pt.is_null(kind):
        return pa.nulls(len(array), pa.large_string())
    if _numeric(kind):
        return format_numbers(_float64(array))
    if pt.is_large_string(kind):
        return array
    if pt.is_string(kind) or str(kind) == "string_view":
        return array.cast(pa.large_string())
    raise _unsupported_type(kind, name)


def format_numbers(values: FloatArray) -> pa.Array:
    """Format numbers as text, integers without a decimal point, so that 1999.0 equals 1999."""
    texts = (
        None if v != v else str(int(v)) if v.is_integer() else repr(v) for v in values.tolist()
    )
    return pa.array(texts, pa.large_string())


def _unsupported_type(kind: pa.DataType, name: str) -> InputError:
    if pt.is_temporal(kind):
        return InputError(
            f"{name} contains {kind}, which is not supported as a feature: convert it to numbers "
            "or dates, or drop the column."
        )
    return InputError(
        f"{name} must contain numbers, booleans or text, got {kind}: unpack, decode or drop it."
    )
