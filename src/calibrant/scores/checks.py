"""Checks of the numbers in a score file, in words of its rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.convert import logits_from_probs, probs_from_logits
from calibrant.errors import InputError
from calibrant.files.source import Place
from calibrant.inputs import LARGEST_LOGIT, SUM_TOLERANCE, FloatArray, as_logits, as_probs
from calibrant.scores.columns import Layout

__all__ = [
    "FLOOR",
    "as_checked_probs",
    "as_finite_logits",
    "checked_scores",
    "checked_weights",
    "floor_note",
    "raised",
    "zero_as",
]

FLOOR = 1e-12
"""No probability counts as smaller where its logit is needed: an exact 0 has none."""

Floats = NDArray[np.floating[Any]]


def checked_scores(batch: pa.RecordBatch, layout: Layout, place: Place) -> Floats:
    """Return the batch's scores as they are, (n,) for a lone column and else (n, K)."""
    columns = [_numbers(batch.column(name), name, place) for name in layout.values]
    values = columns[0] if layout.lone else np.column_stack(columns)
    try:
        return as_probs(values) if layout.kind == "prob" else as_logits(values)
    except InputError as error:
        raise _blame(values, layout, place, error) from None


def as_checked_probs(scores: Floats, layout: Layout) -> Floats:
    """Turn checked scores into probabilities, which most of them are already."""
    if layout.kind == "prob":
        return scores
    return probs_from_logits(scores.astype(np.float64, copy=False))


def as_finite_logits(scores: Floats, layout: Layout) -> tuple[Floats, int]:
    """Turn checked scores into logits; also count the probabilities that were raised to `FLOOR`."""
    if layout.kind == "logit":
        return scores, 0
    low = int(np.count_nonzero(scores < FLOOR))
    if layout.lone:  # the other class's probability is not in the file
        low += int(np.count_nonzero(1.0 - scores < FLOOR))
    return logits_from_probs(scores.astype(np.float64, copy=False), floor=FLOOR), low


def zero_as(probs: Floats) -> float:
    """Return what a probability of exactly 0 stands for in these rows.

    It is half of the least other one, shared among all classes but one. A forest's votes and a
    file's rounded digits say 0 where they mean "less than one vote" or "less than half a digit";
    taking that for 1e-12 would make a certainty of it, and giving half a vote to each of many
    classes would take much from the others. Never below 1e-12, which it also is where all are 0
    or 1.

    Examples
    --------
    >>> zero_as(np.array([[0.0, 1.0], [0.02, 0.98]]))
    0.01
    """
    both = probs if probs.ndim == 2 else np.column_stack([probs, 1.0 - probs])
    least = float(np.min(both, where=both > 0, initial=1.0))
    part = least / (2.0 * (both.shape[1] - 1))
    return max(part, FLOOR) if least < 1.0 and (both == 0).any() else FLOOR


def raised(logits: Floats, floor: float) -> Floats:
    """Raise logits of probabilities to that of `floor`; log-odds (n,) are bounded on both sides."""
    if logits.ndim == 1:
        most = -float(np.log(floor / (1.0 - floor)))
        return np.clip(logits, -most, most)
    return np.maximum(logits, np.log(floor))


def floor_note(floored: int, floor: float = FLOOR) -> str:
    """Say what became of probabilities whose logits the file does not hold.

    Examples
    --------
    >>> floor_note(3)
    '3 probabilities are exactly 0 or 1, or nearer to it than 1e-12: each counts as 1e-12 away.'
    >>> floor_note(1, 0.005)
    '1 probability is exactly 0 or 1: it counts as 0.005 away, which is below the least other one.'
    """
    many, each = (
        (f"{floored:,} probabilities are", "each") if floored > 1 else ("1 probability is", "it")
    )
    if floor > FLOOR:
        below = "which is below the least other one"
        return f"{many} exactly 0 or 1: {each} counts as {floor:.3g} away, {below}."
    near = f"exactly 0 or 1, or nearer to it than {FLOOR:g}"
    return f"{many} {near}: {each} counts as {FLOOR:g} away."


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
    if layout.kind == "prob":
        good = (matrix >= 0) & (matrix <= 1)
    else:
        good = np.abs(matrix.astype(np.float64)) < LARGEST_LOGIT
    if not good.all():
        row, column = divmod(int(np.argmin(good)), matrix.shape[1])
        value = float(matrix[row, column])
        where = f"{place.row(row)}, {place.column(layout.values[column])}"
        if not np.isfinite(value):
            return InputError(
                f"{where}: a {layout.kind} must be a finite number, got {value:g}: "
                "repair or drop that row."
            )
        if layout.kind == "logit":
            return InputError(
                f"{where}: a logit must lie between {-LARGEST_LOGIT:g} and {LARGEST_LOGIT:g}, got "
                f"{value:g}: repair or drop that row."
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
