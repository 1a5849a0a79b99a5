"""Rows with their scores, as a bundle decides on them, and how a model scores many of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from numpy.typing import NDArray

if TYPE_CHECKING:
    from calibrant.models.scorer import Scorer

__all__ = ["Given", "in_order", "is_deep", "notes_of_empty", "scored_in_order"]

Part = TypeVar("Part")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Given:
    """Some rows.

    Parameters
    ----------
    table : all columns of the file that are to be written again
    scores : `logits` or `probs` (n, K) of the rows, in the order of the bundle's classes
    """

    table: pa.Table
    scores: Mapping[str, NDArray[Any]]


def is_deep(scorer: Scorer) -> bool:
    """Say whether a network is so large that one batch keeps all cores busy."""
    return scorer.kind == "image" or "transformer" in scorer.networks


def scored_in_order(
    parts: Iterator[Part], score: Callable[[Part], Found], *, deep: bool
) -> Generator[tuple[Part, Found], None, None]:
    """Yield parts with their scores in their order, and read further while they are scored.

    Of a small network several parts are scored at a time, each in a thread of its own on one core.
    A deep one takes one part at a time on all cores, so that it has the memory of one batch.
    """
    with _workers(deep) as workers, ThreadPoolExecutor(workers) as pool:
        try:
            yield from in_order(parts, lambda part: pool.submit(score, part), workers)
        finally:
            pool.shutdown(cancel_futures=True)


def in_order(
    parts: Iterator[Part], start: Callable[[Part], Future[Found]], ahead: int
) -> Generator[tuple[Part, Found], None, None]:
    """Yield parts with what becomes of them, in their order; some are always under way."""
    waiting: deque[tuple[Part, Future[Found]]] = deque()
    for part in parts:
        waiting.append((part, start(part)))
        if len(waiting) > ahead:
            own, found = waiting.popleft()
            yield own, found.result()
    while waiting:
        own, found = waiting.popleft()
        yield own, found.result()


def _workers(deep: bool) -> AbstractContextManager[int]:
    if deep:
        return nullcontext(1)
    from calibrant.models.threads import one_core_each

    return one_core_each()


def notes_of_empty(rows: int) -> tuple[str, ...]:
    """Return what a user is told of rows without a text: nothing where there are none.

    Examples
    --------
    >>> notes_of_empty(1)
    ('1 row has no text, which counts as an empty one.',)
    """
    if not rows:
        return ()
    have = "row has" if rows == 1 else "rows have"
    return (f"{rows:,} {have} no text, which counts as an empty one.",)
