"""Scored rows, and scoring of many batches in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from numpy.typing import NDArray

Part = TypeVar("Part")
Result = TypeVar("Result")


@dataclass(frozen=True)
class ScoredBatch:
    """A batch: columns to write, and `logits` or `probs` (n, K) in the bundle's class order."""

    table: pa.Table
    scores: Mapping[str, NDArray[Any]]
    inputs: Any = None  # what the model read, a column or a table; None without a model


def score_in_order(
    parts: Iterator[Part], score: Callable[[Part], Result], *, deep: bool
) -> Generator[tuple[Part, Result], None, None]:
    """Yield parts with their scores in order, reading ahead while they are scored.

    A small network scores several parts at a time, one core each; a deep one scores one part on
    all cores, to bound its memory.
    """
    with _workers(deep) as workers, ThreadPoolExecutor(workers) as pool:
        try:
            yield from run_in_order(parts, lambda part: pool.submit(score, part), workers)
        finally:
            pool.shutdown(cancel_futures=True)


def run_in_order(
    parts: Iterator[Part], start: Callable[[Part], Future[Result]], ahead: int
) -> Generator[tuple[Part, Result], None, None]:
    """Yield parts with their results in order, keeping `ahead` of them in flight."""
    waiting: deque[tuple[Part, Future[Result]]] = deque()
    for part in parts:
        waiting.append((part, start(part)))
        if len(waiting) > ahead:
            done, future = waiting.popleft()
            yield done, future.result()
    while waiting:
        done, future = waiting.popleft()
        yield done, future.result()


def _workers(deep: bool) -> AbstractContextManager[int]:
    if deep:
        return nullcontext(1)
    from calibrant.cores import one_core_each

    return one_core_each()


def describe_empty_texts(rows: int) -> tuple[str, ...]:
    """Return the note about rows without text, if there are any."""
    if not rows:
        return ()
    have = "row has" if rows == 1 else "rows have"
    return (f"{rows:,} {have} no text: treated as empty.",)
