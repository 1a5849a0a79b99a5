"""Requests in batches: scored together, written together, answered when they are on record.

    submit ──► queue (bounded) ──► scoring thread ──► writing thread ──► answers
               rows wait for each      one call of        one commit
               other at most a moment  the model

While one batch is written the next is scored, and rows that come meanwhile make up the one after.
The queue belongs to the event loop, which hands over whole batches: a thread that woke up for every
request would cost more than the request. The loop also gives up what waits too long, where the
database hangs and the threads with it.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

__all__ = ["Batcher", "Expired", "QueueFull", "Waiting"]

Asked = TypeVar("Asked")

_Outcome = BaseException | Any

_SWEEP_EVERY = 0.25
"""Seconds between looks for requests that have waited too long."""

_DRAIN_EVERY = 0.01
"""Seconds between looks whether all is answered, when the service stops."""


class QueueFull(Exception):
    """More rows wait than may."""


class Expired(Exception):
    """A row waited longer than it may."""


@dataclass(slots=True, eq=False)
class Waiting(Generic[Asked]):
    """A request in the queue.

    Parameters
    ----------
    asked : what `score` gets
    rows : how many rows it has
    since : when it came, and then when it was scored, on the clock of `time.perf_counter`
    future : where its answer goes
    """

    asked: Asked
    rows: int
    since: float
    future: asyncio.Future[Any]


class Batcher(Generic[Asked]):
    """Gathers requests into batches for a model and a database.

    Parameters
    ----------
    score : gets the requests of a batch, and returns something for each of them
    write : gets what `score` returned, and returns an answer or an exception for each request
    max_queue : rows that may wait or be under way
    max_batch : rows of a batch, where no single request has more
    max_wait : seconds that the first row of a batch waits for more
    timeout : seconds after which a request that still waits, to be scored or to be written, is
        given up; one that is written nevertheless is on record
    seen : is told the rows of every batch
    """

    def __init__(
        self,
        score: Callable[[Sequence[Asked]], Sequence[Any]],
        write: Callable[[Any], Sequence[_Outcome]],
        *,
        max_queue: int,
        max_batch: int,
        max_wait: float,
        timeout: float,
        seen: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self._score, self._write, self._seen = score, write, seen
        self._max_queue, self._max_batch = max_queue, max_batch
        self._max_wait, self._timeout = max_wait, timeout
        # What the loop owns: requests that wait, and batches that are not written yet.
        self._waiting: deque[Waiting[Asked]] = deque()
        self._waiting_rows = self._depth = 0
        self._unwritten: dict[int, list[Waiting[Asked]]] = {}
        self._busy = self._stopping = False
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # What threads take from.
        self._to_score: queue.SimpleQueue[list[Waiting[Asked]] | None] = queue.SimpleQueue()
        self._to_write: queue.Queue[tuple[list[Waiting[Asked]], Any] | None] = queue.Queue(1)
        self._threads: list[threading.Thread] = []

    @property
    def depth(self) -> int:
        """Rows that wait or are under way."""
        return self._depth

    def start(self) -> None:
        """Start both threads; called from the event loop."""
        self._loop = asyncio.get_running_loop()
        for target, name in ((self._scoring, "scoring"), (self._writing, "writing")):
            thread = threading.Thread(target=target, name=f"calibrant-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._sweep()

    async def submit(self, asked: Asked, rows: int) -> Any:
        """Wait for the answer to a request; raise `QueueFull` at once where too many rows wait."""
        assert self._loop is not None, "start comes first"
        if self._depth + rows > self._max_queue or self._stopping:
            raise QueueFull
        future = self._loop.create_future()
        self._waiting.append(Waiting(asked, rows, time.perf_counter(), future))
        self._depth += rows
        self._waiting_rows += rows
        if not self._busy:
            self._hand_over_soon()
        return await future

    async def stop(self, seconds: float) -> bool:
        """Answer what waits, then end both threads; tell whether they ended in time."""
        self._stopping = True
        until = time.monotonic() + seconds
        while self._depth and time.monotonic() < until:
            await asyncio.sleep(_DRAIN_EVERY)
        self._to_score.put(None)
        while self._alive() and time.monotonic() < until:
            await asyncio.sleep(_DRAIN_EVERY)
        return not self._alive()

    def _alive(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _hand_over_soon(self) -> None:
        """Hand over a batch that is full, or else after a moment in which others may come."""
        if self._waiting_rows >= self._max_batch or self._max_wait == 0:
            self._hand_over()
        elif self._timer is None:
            assert self._loop is not None
            self._timer = self._loop.call_later(self._max_wait, self._hand_over)

    def _hand_over(self) -> None:
        """Give the scoring thread its next batch."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._give_up_waiting()
        if self._busy or not self._waiting:
            return
        batch: list[Waiting[Asked]] = []
        rows = 0
        while self._waiting and (not batch or rows + self._waiting[0].rows <= self._max_batch):
            batch.append(self._waiting.popleft())
            rows += batch[-1].rows
        self._waiting_rows -= rows
        self._busy = True
        self._to_score.put(batch)

    def _scoring(self) -> None:
        assert self._loop is not None
        while (batch := self._to_score.get()) is not None:
            self._seen(sum(each.rows for each in batch))
            self._score_batch(batch)
            self._loop.call_soon_threadsafe(self._idle)
        self._to_write.put(None)

    def _score_batch(self, batch: list[Waiting[Asked]]) -> None:
        assert self._loop is not None
        try:
            scored = self._score([each.asked for each in batch])
        except Exception as error:
            if len(batch) == 1:
                self._loop.call_soon_threadsafe(self._resolve, batch, [error])
                return
            self._score_singly(batch)
            return
        self._pass_on(batch, scored)

    def _score_singly(self, batch: list[Waiting[Asked]]) -> None:
        """Score each request alone: one that cannot be scored must not take others with it."""
        assert self._loop is not None
        good: list[tuple[Waiting[Asked], Any]] = []
        for each in batch:
            try:
                good += [(each, one) for one in self._score([each.asked])]
            except Exception as error:
                self._loop.call_soon_threadsafe(self._resolve, [each], [error])
        if good:  # written in one commit all the same
            self._pass_on([each for each, _ in good], [one for _, one in good])

    def _pass_on(self, batch: list[Waiting[Asked]], scored: Any) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._was_scored, batch)
        self._to_write.put((batch, scored))

    def _writing(self) -> None:
        assert self._loop is not None
        while (item := self._to_write.get()) is not None:
            batch, scored = item
            try:
                answers = self._write(scored)
            except Exception as error:
                answers = [error] * len(batch)
            self._loop.call_soon_threadsafe(self._was_written, batch, answers)

    def _idle(self) -> None:
        """Let the scoring thread go on at once with what came while it was at work."""
        self._busy = False
        if self._waiting:
            self._hand_over()

    def _was_scored(self, batch: list[Waiting[Asked]]) -> None:
        now = time.perf_counter()
        for each in batch:
            each.since = now
        self._unwritten[id(batch)] = batch

    def _was_written(self, batch: list[Waiting[Asked]], answers: Sequence[_Outcome]) -> None:
        del self._unwritten[id(batch)]
        self._resolve(batch, answers)

    def _sweep(self) -> None:
        """Give up what has waited too long, for the model or for the database."""
        assert self._loop is not None
        self._give_up_waiting()
        now = time.perf_counter()
        for each in (each for batch in self._unwritten.values() for each in batch):
            if now - each.since > self._timeout and not each.future.done():
                each.future.set_exception(Expired())  # it still counts until it is written
        if not self._stopping or self._depth:
            self._loop.call_later(_SWEEP_EVERY, self._sweep)

    def _give_up_waiting(self) -> None:
        now = time.perf_counter()
        while self._waiting and now - self._waiting[0].since > self._timeout:
            late = self._waiting.popleft()
            self._waiting_rows -= late.rows
            self._resolve([late], [Expired()])

    def _resolve(self, batch: Sequence[Waiting[Asked]], answers: Sequence[_Outcome]) -> None:
        for each, answer in zip(batch, answers, strict=True):
            self._depth -= each.rows
            if each.future.done():  # the client went away
                continue
            if isinstance(answer, BaseException):
                each.future.set_exception(answer)
            else:
                each.future.set_result(answer)
