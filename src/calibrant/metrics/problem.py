"""Binary calibration problems (score and event) from class probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.cores import usable_cores
from calibrant.inputs import IntArray, ScoredRows, Target, resolve_single_target
from calibrant.metrics.tally import Tally, tally_rows

BLOCK = 1 << 16  # Number of rows per block; a block of a few classes fits into the CPU cache

# Rows of up to this many columns are compared column by column, which is faster than argmax.
_FEW_COLUMNS = 64


def target_problem(
    scored: ScoredRows, target: Target
) -> tuple[NDArray[np.floating[Any]], NDArray[np.bool_]]:
    """Return the score and event of each row for `positive` or `top-label`.

    positive
        the score is P(positive), the event is that the label is positive
    top-label
        the score is the largest probability, the event is that its class is the label
    """
    if target == "positive":
        return scored.positive, scored.labels == 1
    confidence, predicted = top_label(scored)
    return confidence, predicted == scored.labels


def class_problem(
    scored: ScoredRows, k: int
) -> tuple[NDArray[np.floating[Any]], NDArray[np.bool_]]:
    """Return P(class k) and whether the label is class k, for each row."""
    if scored.probs.ndim == 1:
        positive = scored.probs.astype(np.float64, copy=False)
        return (positive if k == 1 else 1.0 - positive), scored.labels == k
    return scored.probs[:, k], scored.labels == k


def predictions(scored: ScoredRows) -> IntArray:
    """Return the most probable class of each row, the first one on ties."""
    return top_label(scored)[1]


def top_label(scored: ScoredRows) -> tuple[NDArray[np.floating[Any]], IntArray]:
    """Return the largest probability of each row and the first class that has it."""
    if scored.probs.ndim == 1:
        positive = scored.probs.astype(np.float64, copy=False)
        return np.maximum(positive, 1.0 - positive), (positive > 0.5).astype(np.int64)
    n, k = scored.probs.shape
    confidence = np.empty(n, dtype=scored.probs.dtype)
    predicted = np.empty(n, dtype=np.int64)

    def work(rows: slice) -> None:
        confidence[rows], predicted[rows] = _top_of_block(scored.probs[rows])

    map_blocks(work, n, costly=k * n > 1 << 20)
    return confidence, predicted


def blocks(n: int, size: int = BLOCK) -> Iterator[slice]:
    """Yield slices of at most `size` rows."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def map_blocks(work: Any, n: int, *, costly: bool, size: int = BLOCK) -> list[Any]:
    """Call `work(rows)` for each block of rows, on all cores if it is costly."""
    if not costly or usable_cores() == 1:
        return [work(rows) for rows in blocks(n, size)]
    with ThreadPoolExecutor(max_workers=usable_cores()) as pool:
        return list(pool.map(work, blocks(n, size)))


def _top_of_block(probs: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    if probs.shape[1] > _FEW_COLUMNS:
        first = probs.argmax(axis=1)
        return np.take_along_axis(probs, first[:, None], axis=1)[:, 0], first
    columns = np.empty(probs.shape[::-1], dtype=probs.dtype)
    np.copyto(columns, probs.T)  # faster than ascontiguousarray
    best = np.maximum.reduce(columns, axis=0)
    reached = np.zeros(len(best), dtype=bool)
    since = np.zeros(
        len(best), dtype=np.uint8
    )  # number of columns from the first maximum to the end
    for column in columns:
        reached |= column == best
        since += reached
    return best, len(columns) - since.astype(np.int64)


def tally_target(scored: ScoredRows, target: str | None) -> Tally:
    """Return the tally of the `positive` or `top-label` problem."""
    resolved = resolve_single_target(target, len(scored.classes))
    return tally_rows(*target_problem(scored, resolved), scored.weights)
