"""Alignment of two score files with the same rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.scores.labels import BOOLEAN_CODES
from calibrant.scores.read import Scores, are_boolean

Ids = NDArray[np.str_]


def pair_scores(
    a: Scores, b: Scores, *, files: tuple[str, str] = ("A", "B")
) -> tuple[Scores, Scores]:
    """Align two sets of scores by rows, classes and shape, or raise `InputError`.

    Rows are matched by id if both files have ids, else by order.
    """
    b = _same_classes(a, b, files)
    by_id = False
    if a.ids is not None and b.ids is not None:
        by_id, b = True, _take_rows(b, _row_order(a.ids, b.ids, files))
    if a.n != b.n:
        raise InputError(
            f"{files[0]} has {a.n:,} rows and {files[1]} {b.n:,}: "
            "give the scores of both models for the same rows."
        )
    remedy = "correct the label" if by_id else "sort both files alike or add a column 'id'"
    different = a.labels != b.labels
    if different.any():
        row = int(np.argmax(different))
        raise InputError(
            f"{_describe_row(a, row)} has label '{a.classes[a.labels[row]]}' in {files[0]} and "
            f"'{b.classes[b.labels[row]]}' in {files[1]}: {remedy}."
        )
    return _same_weights(a, b, files)


def _same_classes(a: Scores, b: Scores, files: tuple[str, str]) -> Scores:
    """Convert B's class columns to the names, order and shape of A's."""
    if set(a.classes) != set(b.classes) and are_boolean(a.classes) and are_boolean(b.classes):
        name_of = {BOOLEAN_CODES[name.lower()]: name for name in a.classes}
        b = replace(b, classes=tuple(name_of[BOOLEAN_CODES[name.lower()]] for name in b.classes))
    if set(a.classes) != set(b.classes):
        unmatched = sorted(set(a.classes) ^ set(b.classes))[0]
        where = files[0] if unmatched in a.classes else files[1]
        raise InputError(
            f"{files[0]} and {files[1]} have different classes: '{unmatched}' is only in {where}: "
            "give scores of the same classes for both models."
        )
    order = [b.classes.index(name) for name in a.classes]
    matrix = np.column_stack([1.0 - b.probs, b.probs]) if b.probs.ndim == 1 else b.probs
    matrix = matrix[:, order]
    codes = np.argsort(order)[b.labels]
    probs = matrix[:, 1] if a.probs.ndim == 1 else matrix
    return replace(b, labels=codes, probs=probs, classes=a.classes)


def _row_order(ids: Ids, other: Ids, files: tuple[str, str]) -> NDArray[np.intp]:
    """Return the position of each of `ids` in `other`."""
    pairs = ((ids, other, files[0], files[1]), (other, ids, files[1], files[0]))
    for own, others, file, other_file in pairs:
        values, counts = np.unique(own, return_counts=True)
        if counts.max() > 1:
            duplicate = values[int(np.argmax(counts > 1))]
            raise InputError(f"{file} has the id '{duplicate}' more than once: ids must be unique.")
        missing = ~np.isin(own, others)
        if missing.any():
            raise InputError(
                f"the id '{own[int(np.argmax(missing))]}' of {file} is missing in {other_file}: "
                "give the scores of both models for the same rows."
            )
    order = np.argsort(other)
    return order[np.searchsorted(other, ids, sorter=order)]


def _take_rows(scores: Scores, rows: NDArray[np.intp]) -> Scores:
    def take(column: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        return None if column is None else column[rows]

    return replace(
        scores,
        labels=scores.labels[rows],
        probs=scores.probs[rows],
        weights=take(scores.weights),
        ids=None if scores.ids is None else scores.ids[rows],
    )


def _same_weights(a: Scores, b: Scores, files: tuple[str, str]) -> tuple[Scores, Scores]:
    """Use the weights of either file; reject weights that differ."""
    weights = a.weights if a.weights is not None else b.weights
    if a.weights is not None and b.weights is not None:
        different = ~np.isclose(a.weights, b.weights)
        if different.any():
            row = int(np.argmax(different))
            raise InputError(
                f"{_describe_row(a, row)} has weight {a.weights[row]:g} in {files[0]} and "
                f"{b.weights[row]:g} in {files[1]}: use the same weight for the same row."
            )
    return replace(a, weights=weights), replace(b, weights=weights)


def _describe_row(scores: Scores, row: int) -> str:
    return f"data row {row + 1:,}" if scores.ids is None else f"the row with id '{scores.ids[row]}'"
