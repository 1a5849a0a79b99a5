"""Checks of scores and weights, with errors that locate the row and column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.convert import logits_from_probs, probs_from_logits
from calibrant.errors import InputError
from calibrant.files.source import BatchLocation
from calibrant.inputs import LARGEST_LOGIT, SUM_TOLERANCE, FloatArray, as_logits, as_probs
from calibrant.scores.columns import Layout

FLOOR = 1e-12  # Smallest probability for the conversion to logits: 0 has no logit

Floats = NDArray[np.floating[Any]]


def check_scores(batch: pa.RecordBatch, layout: Layout, place: BatchLocation) -> Floats:
    """Return the checked scores of a batch, (n,) for a single column, else (n, K)."""
    columns = [_numbers(batch.column(name), name, place) for name in layout.values]
    values = columns[0] if layout.lone else np.column_stack(columns)
    try:
        return as_probs(values) if layout.kind == "prob" else as_logits(values)
    except InputError as error:
        raise _blame(values, layout, place, error) from None


def scores_to_probs(scores: Floats, layout: Layout) -> Floats:
    """Convert checked scores to probabilities."""
    if layout.kind == "prob":
        return scores
    return probs_from_logits(scores.astype(np.float64, copy=False))


def scores_to_logits(scores: Floats, layout: Layout) -> tuple[Floats, int]:
    """Convert checked scores to logits; also count the probabilities clipped to `FLOOR`."""
    if layout.kind == "logit":
        return scores, 0
    low = int(np.count_nonzero(scores < FLOOR))
    if layout.lone:  # the complement is not in the file
        low += int(np.count_nonzero(1.0 - scores < FLOOR))
    return logits_from_probs(scores.astype(np.float64, copy=False), floor=FLOOR), low


def zero_replacement(probs: Floats) -> float:
    """Return the value that replaces probabilities of exactly 0 in these rows.

    It is half of the smallest positive probability, shared among all classes but one. A 0 from
    forest votes or rounded digits means "less than one vote" or "less than half a digit"; 1e-12
    would turn it into a certainty, and half a vote for each of many classes would take too much
    from the others. It is at least 1e-12, and exactly that if all probabilities are 0 or 1.
    """
    both = probs if probs.ndim == 2 else np.column_stack([probs, 1.0 - probs])
    least = float(np.min(both, where=both > 0, initial=1.0))
    share = least / (2.0 * (both.shape[1] - 1))
    return max(share, FLOOR) if least < 1.0 and (both == 0).any() else FLOOR


def clip_logits(logits: Floats, floor: float) -> Floats:
    """Clip log-probabilities to that of `floor`; log-odds (n,) are clipped on both sides."""
    if logits.ndim == 1:
        most = -float(np.log(floor / (1.0 - floor)))
        return np.clip(logits, -most, most)
    return np.maximum(logits, np.log(floor))


def floor_note(floored: int, floor: float = FLOOR) -> str:
    """Return a note about probabilities that were clipped."""
    subject, pronoun = (
        (f"{floored:,} probabilities are", "each") if floored > 1 else ("1 probability is", "it")
    )
    if floor > FLOOR:
        below = "less than the smallest other one"
        return f"{subject} exactly 0 or 1: {pronoun} counts as {floor:.3g} away, {below}."
    near = f"exactly 0 or 1, or within {FLOOR:g} of it"
    return f"{subject} {near}: {pronoun} counts as {FLOOR:g} away."


def check_weights(column: pa.Array, name: str, place: BatchLocation) -> FloatArray:
    """Return the weights of a batch, checked to be finite and not negative."""
    weights = _numbers(column, name, place).astype(np.float64, copy=False)
    invalid = ~(np.isfinite(weights) & (weights >= 0))
    if invalid.any():
        row = int(np.argmax(invalid))
        raise InputError(
            f"{place.row(row)}, {place.column(name)}: a weight must be finite and not negative, "
            f"got {weights[row]:g}: it is the inverse of the inclusion probability."
        )
    return weights


def _numbers(column: pa.Array, name: str, place: BatchLocation) -> NDArray[np.floating[Any]]:
    """Convert a column to floats, without a copy if it is floating point."""
    kind = column.type
    if column.null_count:  # before the type check: an all-null column has no type
        row = int(pc.index(column.is_null(), True).as_py())
        raise InputError(
            f"{place.row(row)}, {place.column(name)}: the value is missing: fill or drop that row."
        )
    if pa.types.is_decimal(kind) or pa.types.is_integer(kind):
        column = column.cast(pa.float64(), safe=False)
    elif not pa.types.is_floating(kind):
        raise InputError(
            f"{place.file}: {place.column(name)} must be numeric, got {kind}: "
            "save it as floating point."
        )
    values: NDArray[np.floating[Any]] = column.to_numpy(zero_copy_only=False)
    return values.astype(np.float32) if values.dtype == np.float16 else values


def _blame(
    values: NDArray[np.floating[Any]], layout: Layout, place: BatchLocation, error: InputError
) -> InputError:
    """Return an error that locates what `calibrant.inputs` rejected in the file."""
    matrix = values.reshape(len(values), -1)
    if layout.kind == "prob":
        valid = (matrix >= 0) & (matrix <= 1)
    else:
        valid = np.abs(matrix.astype(np.float64)) < LARGEST_LOGIT
    if not valid.all():
        row, column = divmod(int(np.argmin(valid)), matrix.shape[1])
        value = float(matrix[row, column])
        where = f"{place.row(row)}, {place.column(layout.values[column])}"
        if not np.isfinite(value):
            return InputError(
                f"{where}: a {layout.kind} must be a finite number, got {value:g}: "
                "correct or drop that row."
            )
        if layout.kind == "logit":
            return InputError(
                f"{where}: a logit must lie between {-LARGEST_LOGIT:g} and {LARGEST_LOGIT:g}, got "
                f"{value:g}: correct or drop that row."
            )
        return InputError(
            f"{where}: a probability must lie in [0, 1], got {value:g}: rename the columns to "
            "'logit_...' if these are logits, divide by 100 if they are percentages."
        )
    if layout.lone:  # no other known cause: keep the original message
        return InputError(f"{place.file}: {error}")
    sums = matrix.sum(axis=1, dtype=np.float64)
    # The first row out of tolerance; at the edge of the tolerance, the worst row.
    deviation = np.abs(sums - 1.0)
    row = (
        int(np.argmax(deviation > SUM_TOLERANCE))
        if deviation.max() > SUM_TOLERANCE
        else int(deviation.argmax())
    )
    return InputError(
        f"{place.row(row)}: the probabilities sum to {sums[row]:.6g}, but each row must sum to 1 "
        f"(within {SUM_TOLERANCE:g}): check for a missing class column."
    )
