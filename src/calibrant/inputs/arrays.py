"""What the user hands over becomes a numpy array of one type; what cannot is told in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError

__all__ = [
    "as_array",
    "as_float",
    "as_objects",
    "first_place",
    "is_missing",
    "listed",
    "plain",
    "told_gap",
    "told_place",
]

_NUMBERS = {"bool", "int", "float", "int64", "float64", "bool_", "Decimal"}


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Accept lists, numpy, pandas, polars, Arrow and CPU tensors.

    Examples
    --------
    >>> as_array([1, 2], "labels")
    array([1, 2])
    """
    values = _in_memory(values, name)
    if hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = _table_to_numpy(values)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} cannot be read as an array: {error}.") from None
    if array.dtype.kind == "O":
        array = _from_objects(array, name)
    return array


def as_float(values: Any, name: str) -> NDArray[np.floating[Any]]:
    """Accept numbers alone; float32 and float64 are kept as they are."""
    array = as_array(values, name)
    if array.dtype.kind in "biu":
        return array.astype(np.float64)
    if array.dtype.kind != "f":
        first = repr(plain(array.ravel()[0])) if array.size else "none"
        raise InputError(f"{name} must be numbers, got {array.dtype}: first value {first}.")
    if array.dtype == np.float16:
        return array.astype(np.float32)
    if array.dtype in (np.float32, np.float64) and array.dtype.isnative:
        return array
    return array.astype(np.float64)  # long doubles, and numbers in another machine's byte order


def as_objects(values: Any) -> NDArray[Any]:
    """Accept a column of anything, gaps among it, which become None where it is masked."""
    if isinstance(values, np.ma.MaskedArray):
        filled = np.asarray(values.data).astype(object)
        filled[np.ma.getmaskarray(values)] = None
        return filled
    if hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = _table_to_numpy(values)
    if isinstance(values, list | tuple):  # numpy would write a gap among names as the name 'nan'
        made = np.empty(len(values), dtype=object)
        made[:] = values
        return made
    return np.asarray(values)


def is_missing(value: Any) -> bool:
    """Whether a value stands for a gap: None, nan, or what pandas writes for one."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True  # pandas' own gap is neither equal to itself nor not
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # an array, or another thing that cannot say
        return False


def first_place(mask: NDArray[Any]) -> tuple[int, ...]:
    """Return where a mask is true first."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def told_place(where: tuple[int, ...]) -> str:
    """Name a place in words.

    Examples
    --------
    >>> told_place((3,)), told_place((3, 1))
    ('row 3', 'row 3, column 1')
    """
    row = f"row {where[0]}"
    return row if len(where) == 1 else f"{row}, column {where[1]}"


def told_gap(name: str, mask: NDArray[Any]) -> InputError:
    """Return the error that tells where the first missing value is."""
    if mask.ndim == 0:
        return InputError(f"{name} is missing: give an array, got None.")
    where = told_place(first_place(mask))
    return InputError(f"{name} has a missing value in {where}: drop or fill that row.")


def plain(value: Any) -> Any:
    """Turn a numpy scalar into the Python value that users compare with."""
    return value.item() if isinstance(value, np.generic) else value


def listed(names: Sequence[Any], most: int = 8) -> str:
    """Write out names, of many the first."""
    shown = ", ".join(repr(n) for n in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _in_memory(values: Any, name: str) -> Any:
    """Refuse what has no plain array behind it: sparse matrices, masked rows, other devices."""
    if hasattr(values, "toarray") and hasattr(values, "nnz"):  # scipy's, without importing it
        raise InputError(f"{name} is a sparse matrix: give {name}.toarray().")
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        if mask.any():
            raise told_gap(name, mask)
        return values.data
    if hasattr(values, "detach"):  # a torch tensor, without importing torch
        values = values.detach()
        if str(getattr(values, "dtype", "")) == "torch.bfloat16":  # numpy has no bfloat16
            values = values.float()
        if getattr(getattr(values, "device", None), "type", "cpu") != "cpu":
            raise InputError(f"{name} is a tensor on {values.device}: call .cpu() on it first.")
    return values


def _table_to_numpy(values: Any) -> Any:
    """Turn a pandas, polars or Arrow column or table into numpy."""
    if hasattr(values, "column_names"):  # an Arrow table or record batch
        return np.column_stack([column.to_numpy() for column in values.columns])
    try:
        return values.to_numpy(zero_copy_only=False)  # an Arrow array with nulls or booleans
    except TypeError:
        return values.to_numpy()


def _from_objects(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Give an object array its real type; a missing value or a mixture is an error."""
    flat = array.ravel()
    missing = np.fromiter((is_missing(v) for v in flat), bool, len(flat))
    if missing.any():
        raise told_gap(name, missing.reshape(array.shape))
    kinds = {type(v).__name__ for v in flat}
    if kinds <= {"str"}:
        return array.astype(str)
    if kinds <= _NUMBERS:
        return array.astype(np.float64)
    raise InputError(
        f"{name} mixes {' and '.join(sorted(kinds))}: give numbers, or names of one type."
    )
