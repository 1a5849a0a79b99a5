"""Convert user input to typed numpy arrays, or raise `InputError`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError

_NUMBERS = {"bool", "int", "float", "int64", "float64", "bool_", "Decimal"}


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Convert a list, numpy array, pandas, polars or Arrow column, or CPU tensor to numpy."""
    values = _refuse_unsupported(values, name)
    if hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = _table_to_numpy(values)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} cannot be read as an array: {error}.") from None
    if array.dtype.kind == "O":
        array = _infer_dtype(array, name)
    return array


def as_float(values: Any, name: str) -> NDArray[np.floating[Any]]:
    """Convert numbers to a float array; float32 and float64 keep their dtype."""
    array = as_array(values, name)
    if array.dtype.kind in "biu":
        return array.astype(np.float64)
    if array.dtype.kind != "f":
        first = repr(to_python(array.ravel()[0])) if array.size else "none"
        raise InputError(f"{name} must be numbers, got {array.dtype}: first value {first}.")
    if array.dtype == np.float16:
        return array.astype(np.float32)
    if array.dtype in (np.float32, np.float64) and array.dtype.isnative:
        return array
    return array.astype(np.float64)  # long doubles and non-native byte order


def as_objects(values: Any) -> NDArray[Any]:
    """Convert a column of any values to numpy; masked entries become None."""
    if isinstance(values, np.ma.MaskedArray):
        filled = np.asarray(values.data).astype(object)
        filled[np.ma.getmaskarray(values)] = None
        return filled
    if hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = _table_to_numpy(values)
    if isinstance(values, list | tuple):  # np.asarray would turn NaN among strings into 'nan'
        objects = np.empty(len(values), dtype=object)
        objects[:] = values
        return objects
    return np.asarray(values)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or one of pandas' missing markers."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True  # comparing pd.NA with itself is not a bool
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # arrays and other values without a truth value
        return False


def first_position(mask: NDArray[Any]) -> tuple[int, ...]:
    """Return the index of the first true entry of a mask."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def format_position(index: tuple[int, ...]) -> str:
    """Format an index for an error message."""
    row = f"row {index[0]}"
    return row if len(index) == 1 else f"{row}, column {index[1]}"


def missing_value_error(name: str, mask: NDArray[Any]) -> InputError:
    """Return the error that names the position of the first missing value."""
    if mask.ndim == 0:
        return InputError(f"{name} is missing: pass an array, got None.")
    where = format_position(first_position(mask))
    return InputError(f"{name} has a missing value in {where}: drop or fill that row.")


def to_python(value: Any) -> Any:
    """Convert a numpy scalar to the Python value; leave other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def join_names(names: Sequence[Any], most: int = 8) -> str:
    """Join names for a message; of more than `most`, show the first ones and count the rest."""
    shown = ", ".join(repr(n) for n in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _refuse_unsupported(values: Any, name: str) -> Any:
    """Refuse sparse matrices, masked values and tensors on other devices."""
    if hasattr(values, "toarray") and hasattr(values, "nnz"):  # scipy.sparse, without importing it
        raise InputError(f"{name} is a sparse matrix: pass {name}.toarray().")
    if isinstance(values, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(values)
        if mask.any():
            raise missing_value_error(name, mask)
        return values.data
    if hasattr(values, "detach"):  # a torch tensor, without importing torch
        values = values.detach()
        if str(getattr(values, "dtype", "")) == "torch.bfloat16":  # numpy has no bfloat16
            values = values.float()
        if getattr(getattr(values, "device", None), "type", "cpu") != "cpu":
            raise InputError(f"{name} is a tensor on {values.device}: call .cpu() on it first.")
    return values


def _table_to_numpy(values: Any) -> Any:
    """Convert a pandas, polars or Arrow column or table to numpy."""
    if hasattr(values, "column_names"):  # an Arrow table or record batch
        return np.column_stack([column.to_numpy() for column in values.columns])
    try:
        return values.to_numpy(zero_copy_only=False)  # an Arrow array with nulls or booleans
    except TypeError:
        return values.to_numpy()


def _infer_dtype(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Convert an object array to strings or floats; refuse missing values and mixed types."""
    flat = array.ravel()
    missing = np.fromiter((is_missing(v) for v in flat), bool, len(flat))
    if missing.any():
        raise missing_value_error(name, missing.reshape(array.shape))
    kinds = {type(v).__name__ for v in flat}
    if kinds <= {"str"}:
        return array.astype(str)
    if kinds <= _NUMBERS:
        return array.astype(np.float64)
    raise InputError(
        f"{name} mixes {' and '.join(sorted(kinds))}: pass only numbers or only strings."
    )
