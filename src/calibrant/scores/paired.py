"""Two score files about the same rows, brought into the same order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.scores.classes import are_truths
from calibrant.scores.labels import TRUTH
from calibrant.scores.read import Scores

__all__ = ["paired"]

Ids = NDArray[np.str_]


def paired(a: Scores, b: Scores, *, files: tuple[str, str] = ("A", "B")) -> tuple[Scores, Scores]:
    """Return both with the same rows, classes and form, or say what differs first.

    Rows are matched by their ids where both have ids, else by their order.

    Examples
    --------
    >>> a = Scores(np.array([0, 1]), np.array([.1, .8]), ("0", "1"), ids=np.array(["x", "y"]))
    >>> b = Scores(np.array([1, 0]), np.array([.9, .2]), ("0", "1"), ids=np.array(["y", "x"]))
    >>> paired(a, b)[1].probs
    array([0.2, 0.9])
    """
    b = _same_classes(a, b, files)
    by_id = False
    if a.ids is not None and b.ids is not None:
        by_id, b = True, _taken(b, _order(a.ids, b.ids, files))
    if a.n != b.n:
        raise InputError(
            f"{files[0]} has {a.n:,} rows and {files[1]} {b.n:,}: "
            "give both models' scores for the same rows."
        )
    remedy = "correct the label" if by_id else "bring both into the same order or add a column 'id'"
    differ = a.labels != b.labels
    if differ.any():
        row = int(np.argmax(differ))
        raise InputError(
            f"{_row(a, row)} has label '{a.classes[a.labels[row]]}' in {files[0]} and "
            f"'{b.classes[b.labels[row]]}' in {files[1]}: {remedy}."
        )
    return _same_weights(a, b, files)


def _same_classes(a: Scores, b: Scores, files: tuple[str, str]) -> Scores:
    """Bring B's class columns into A's names, order and form."""
    if set(a.classes) != set(b.classes) and are_truths(a.classes) and are_truths(b.classes):
        called = {TRUTH[name.lower()]: name for name in a.classes}
        b = replace(b, classes=tuple(called[TRUTH[name.lower()]] for name in b.classes))
    if set(a.classes) != set(b.classes):
        odd = sorted(set(a.classes) ^ set(b.classes))[0]
        where = files[0] if odd in a.classes else files[1]
        raise InputError(
            f"{files[0]} and {files[1]} have different classes: '{odd}' is only in {where}: "
            "both models must score the same classes."
        )
    order = [b.classes.index(name) for name in a.classes]
    matrix = np.column_stack([1.0 - b.probs, b.probs]) if b.probs.ndim == 1 else b.probs
    matrix = matrix[:, order]
    codes = np.argsort(order)[b.labels]
    probs = matrix[:, 1] if a.probs.ndim == 1 else matrix
    return replace(b, labels=codes, probs=probs, classes=a.classes)


def _order(ids: Ids, other: Ids, files: tuple[str, str]) -> NDArray[np.intp]:
    """Return where each of `ids` stands in `other`."""
    pairs = ((ids, other, files[0], files[1]), (other, ids, files[1], files[0]))
    for mine, theirs, file, other_file in pairs:
        values, counts = np.unique(mine, return_counts=True)
        if counts.max() > 1:
            twice = values[int(np.argmax(counts > 1))]
            raise InputError(f"{file} has the id '{twice}' more than once: an id names one row.")
        lost = ~np.isin(mine, theirs)
        if lost.any():
            raise InputError(
                f"the id '{mine[int(np.argmax(lost))]}' of {file} is missing in {other_file}: "
                "give both models' scores for the same rows."
            )
    order = np.argsort(other)
    return order[np.searchsorted(other, ids, sorter=order)]


def _taken(scores: Scores, rows: NDArray[np.intp]) -> Scores:
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
    """Weights belong to rows: one file may leave them out, but they may not differ."""
    weights = a.weights if a.weights is not None else b.weights
    if a.weights is not None and b.weights is not None:
        differ = ~np.isclose(a.weights, b.weights)
        if differ.any():
            row = int(np.argmax(differ))
            raise InputError(
                f"{_row(a, row)} has weight {a.weights[row]:g} in {files[0]} and "
                f"{b.weights[row]:g} in {files[1]}: a weight belongs to the row, so use the same."
            )
    return replace(a, weights=weights), replace(b, weights=weights)


def _row(scores: Scores, row: int) -> str:
    return f"data row {row + 1:,}" if scores.ids is None else f"the row with id '{scores.ids[row]}'"
