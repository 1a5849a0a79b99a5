"""Tables of any kind, seen as named columns of numbers or of words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import FloatArray

__all__ = ["Column", "Table", "as_column", "as_table", "is_missing", "is_number", "number_words"]

Column = Any
"""Numbers: a float64 array in which NaN is a missing value. Words: Arrow text with nulls."""

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
    names : of the columns; x0, x1, ... where the user's table has none
    columns : each a float64 array (NaN is missing) or Arrow text (null is missing); None for one
        that was not asked for
    n : number of rows
    named : whether the names are the user's
    """

    names: tuple[str, ...]
    columns: tuple[Column | None, ...]
    n: int
    named: bool

    def __len__(self) -> int:
        return self.n

    def take(self, rows: NDArray[np.int64]) -> Table:
        """Return the rows at these positions."""
        taken = tuple(_taken(column, rows) for column in self.columns)
        return Table(self.names, taken, len(rows), self.named)


def _taken(column: Column | None, rows: NDArray[np.int64]) -> Column | None:
    if column is None:
        return None
    return column[rows] if is_number(column) else column.take(pa.array(rows))


def is_number(column: Column) -> bool:
    """Say whether a column holds numbers."""
    return isinstance(column, np.ndarray)


def is_missing(value: Any) -> bool:
    """Say whether a value of the user's stands for none: None, NaN, pandas' NA and NaT."""
    if type(value).__name__ in ("NoneType", "NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def as_table(
    values: Any, *, name: str = "X", wanted: Callable[[int, str], bool] | None = None
) -> Table:
    """Read a table as columns; the type of a column is that of its values, never a guess.

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
    _refuse(values, name)
    found, named = _split(values, name)
    names = tuple(str(key) for key, _ in found)
    if not names:
        n = len(values) if hasattr(values, "__len__") else 0
        raise InputError(
            f"Found array with 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required: "
            f"give {name} at least one column."
        )
    twice = [key for i, key in enumerate(names) if key in names[:i]]
    if twice:
        raise InputError(f"{name} has two columns {twice[0]!r}: rename or drop one of them.")
    n = _length([(key, len(column)) for key, (_, column) in zip(names, found, strict=True)], name)
    asked = [wanted is None or wanted(place, key) for place, key in enumerate(names)]
    columns = tuple(
        as_column(values, name=f"{name} column '{key}'") if ask else None
        for (_, values), key, ask in zip(found, names, asked, strict=True)
    )
    return Table(names, columns, n, named)


def _length(lengths: list[tuple[str, int]], name: str) -> int:
    """Return the number of rows, which all columns must have."""
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
    """Read one column as numbers or as words; refuse infinite numbers, dates and mixtures."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return _finite(values.astype(np.float64, copy=False), name)
    array = _arrow(values, name)
    if pt.is_dictionary(array.type):  # a category by its type, whatever it is a category of
        return _words(array.dictionary, name).take(array.indices)
    if _numeric(array.type):
        return _finite(_float64(array), name)
    return _words(array, name)


def _refuse(values: Any, name: str) -> None:
    """Refuse what is no table, each with its remedy."""
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


def _split(values: Any, name: str) -> tuple[list[tuple[Any, Any]], bool]:
    """Return the columns with their names, and whether those are the user's."""
    if hasattr(values, "iloc") and hasattr(values, "columns"):  # pandas
        found = [(key, values.iloc[:, i]) for i, key in enumerate(values.columns)]
        if all(isinstance(key, int | np.integer) for key, _ in found):
            return _numbered([column for _, column in found])
        return found, True
    if hasattr(values, "__arrow_c_stream__") or isinstance(values, pa.RecordBatch):
        table = _arrow_table(values, name)
        return list(zip(table.column_names, table.columns, strict=True)), True
    if isinstance(values, Mapping):
        return [(key, _listed(column, key, name)) for key, column in values.items()], True
    if isinstance(values, list | tuple) and values and isinstance(values[0], Mapping):
        return _from_dicts(values, name), True
    array = _two_d(values, name)
    if array.dtype.names is not None:
        return [(key, array[key]) for key in array.dtype.names], True
    return _numbered(list(array.T))


def _numbered(columns: Iterable[Any]) -> tuple[list[tuple[Any, Any]], bool]:
    return [(f"x{i}", column) for i, column in enumerate(columns)], False


def _arrow_table(values: Any, name: str) -> pa.Table:
    try:
        return pa.table(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError):
        raise InputError(
            f"{name} must be a table, got one column ({type(values).__name__}): give a table with "
            "one named column for each feature."
        ) from None


def _listed(column: Any, key: Any, name: str) -> Any:
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
            odd = sorted(map(str, set(row) ^ set(keys))) if isinstance(row, Mapping) else [row]
            raise InputError(
                f"{name} row {i} must have the same keys as row 0, but they differ in {odd[0]!r}: "
                "write None where a value is missing."
            )
    return [(key, [row[key] for row in rows]) for key in keys]


def _two_d(values: Any, name: str) -> NDArray[Any]:
    """Read rows as an array; mixed rows become objects, so that no number turns into text."""
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
    return _in_one_piece(values)


def _in_one_piece(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Join chunks: tables that were read or put together in parts have several."""
    if isinstance(values, pa.Array):
        return values
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)


def _from_objects(values: Any, name: str) -> pa.Array:
    """Read numbers of types that Arrow does not mix; refuse any other mixture."""
    flat = np.asarray(values, dtype=object)
    missing = np.fromiter(map(is_missing, flat), bool, len(flat))
    kinds = sorted({type(v).__name__ for v in flat[~missing]})
    if kinds == ["str"]:
        row = next(i for i, v in enumerate(flat) if not missing[i] and not _is_unicode(v))
        raise InputError(f"{name} row {row} is not valid Unicode text: repair that value.")
    try:
        if "str" in kinds or "bool" in kinds or "bool_" in kinds:
            raise ValueError
        wide = np.full(len(flat), np.nan)
        wide[~missing] = [float(v) for v in flat[~missing]]
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{name} holds {' and '.join(kinds)}: give numbers below 1e308 alone, or text alone."
        ) from None
    return pa.array(wide)


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _numeric(kind: pa.DataType) -> bool:
    return bool(
        pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind) or pt.is_decimal(kind)
    )


def _float64(array: pa.Array) -> FloatArray:
    wide = pc.cast(array, pa.float64(), safe=False)
    return np.asarray(wide.to_numpy(zero_copy_only=False), dtype=np.float64)


def _finite(values: FloatArray, name: str) -> FloatArray:
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise InputError(
            f"{name} row {row} is {values[row]}, which is infinity: give a finite number, or None "
            "where the value is missing."
        )
    return values


def _words(array: pa.Array, name: str) -> pa.Array:
    """Return text with nulls."""
    kind = array.type
    if pt.is_null(kind):
        return pa.nulls(len(array), pa.large_string())
    if _numeric(kind):
        return number_words(_float64(array))
    if pt.is_string(kind) or pt.is_large_string(kind) or str(kind) == "string_view":
        return array.cast(pa.large_string())
    raise _no_feature(kind, name)


def number_words(values: FloatArray) -> pa.Array:
    """Write numbers as text, whole ones without a point: 1999.0 and 1999 are the same category."""
    plain = (
        None if v != v else str(int(v)) if v.is_integer() else repr(v) for v in values.tolist()
    )
    return pa.array(plain, pa.large_string())


def _no_feature(kind: pa.DataType, name: str) -> InputError:
    if pt.is_temporal(kind):
        return InputError(
            f"{name} holds dates or times ({kind}), which have no single meaning as a feature: "
            "turn them into numbers first (year, month, days since an event), or drop the column."
        )
    return InputError(
        f"{name} must hold numbers, booleans or text, got {kind}: unpack, decode or drop it."
    )
