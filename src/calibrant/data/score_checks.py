"""Checks of the numbers in a score file, in words of its rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.convert import probs_from_logits
from calibrant.data.score_columns import Layout, Place
from calibrant.errors import InputError
from calibrant.inputs import SUM_TOLERANCE, FloatArray, as_logits, as_probs

__all__ = ["checked_probs", "checked_weights"]


def checked_probs(batch: pa.RecordBatch, layout: Layout, place: Place) -> NDArray[np.floating[Any]]:
    """Return the batch's probabilities, (n,) for a lone column and else (n, K)."""
    columns = [_numbers(batch.column(name), name, place) for name in layout.values]
    values = columns[0] if layout.lone else np.column_stack(columns)
    try:
        if layout.kind == "prob":
            return as_probs(values)
        return probs_from_logits(as_logits(values).astype(np.float64, copy=False))
    except InputError as error:
        raise _blame(values, layout, place, error) from None


def checked_weights(column: pa.Array, name: str, place: Place) -> FloatArray:
    """Return the batch's weights: finite and not negative."""
    weights = _numbers(column, name, place).astype(np.float64, copy=False)
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{place.row(row)}, {place.column(name)}: a weight must be finite and not negative, "
            f"got {weights[row]:g}: it is the inverse of the chance that the row was picked."
        )
    return weights


def _numbers(column: pa.Array, name: str, place: Place) -> NDArray[np.floating[Any]]:
    """Turn a column into floats, without a copy where it holds floats already."""
    kind = column.type
    if column.null_count:  # before the type: a column of nothing but gaps has no type
        row = int(pc.index(column.is_null(), True).as_py())
        raise InputError(
            f"{place.row(row)}, {place.column(name)}: the value is missing: fill or drop that row."
        )
    if pa.types.is_decimal(kind) or pa.types.is_integer(kind):
        column = column.cast(pa.float64(), safe=False)
    elif not pa.types.is_floating(kind):
        raise InputError(
            f"{place.file}: {place.column(name)} must hold numbers, got {kind}: "
            "save it as floating point."
        )
    values: NDArray[np.floating[Any]] = column.to_numpy(zero_copy_only=False)
    return values.astype(np.float32) if values.dtype == np.float16 else values


def _blame(
    values: NDArray[np.floating[Any]], layout: Layout, place: Place, error: InputError
) -> InputError:
    """Say again what `calibrant.inputs` found, in the words of the file."""
    matrix = values.reshape(len(values), -1)
    good = np.isfinite(matrix)
    if layout.kind == "prob":
        good &= (matrix >= 0) & (matrix <= 1)
    if not good.all():
        row, column = divmod(int(np.argmin(good)), matrix.shape[1])
        value = float(matrix[row, column])
        where = f"{place.row(row)}, {place.column(layout.values[column])}"
        if not np.isfinite(value):
            return InputError(
                f"{where}: a {layout.kind} must be a finite number, got {value:g}: "
                "repair or drop that row."
            )
        return InputError(
            f"{where}: a probability must lie in [0, 1], got {value:g}: rename the columns to "
            "'logit_...' if these are logits, divide by 100 if they are percentages."
        )
    if layout.lone:  # nothing is left that could be wrong with it: pass the first finding on
        return InputError(f"{place.file}: {error}")
    sums = matrix.sum(axis=1, dtype=np.float64)
    # The first row that is off; on the very edge of the tolerance, the one that is furthest off.
    off = np.abs(sums - 1.0)
    row = int(np.argmax(off > SUM_TOLERANCE)) if off.max() > SUM_TOLERANCE else int(off.argmax())
    return InputError(
        f"{place.row(row)}: the probabilities sum to {sums[row]:.6g}, but each row must sum to 1 "
        f"(within {SUM_TOLERANCE:g}): check for a missing class column."
    )
