"""Request batching: score together, write in one commit, answer once recorded.

    event loop                    scoring thread            writing thread
    ──────────                    ──────────────            ──────────────
    submit -> _waiting (bounded)
    _send_batch ──── _to_score ─► _score_batch: one
      owns _waiting, _depth,      model call per batch
      _unwritten, _busy,              └──── _to_write ────► _write: one commit
      _timer, all futures                   (size 1)            │
    _resolve ◄──────────── call_soon_threadsafe ────────────────┘
    _sweep: expire requests that wait too long, even if a thread hangs

The threads own no state: they take a batch, call `score` or `write`, and report to the loop. While
one batch is written the next is scored, and requests that arrive meanwhile form the one after.
The loop sends whole batches because waking a thread per request costs more than the request.
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

Request = TypeVar("Request")

_Outcome = BaseException | Any

_SWEEP_EVERY = 0.25  # Seconds between checks for expired requests

_DRAIN_EVERY = 0.01  # Seconds between checks for open requests while the service stops


class QueueFull(Exception):
    """The queue has no room for the rows of a request."""


class Expired(Exception):
    """A request waited longer than the timeout."""


@dataclass(slots=True, eq=False)
class Waiting(Generic[Request]):
    """A queued request; `since` is when it arrived, later when it was scored (`perf_counter`)."""

    request: Request
    rows: int
    since: float
    future: asyncio.Future[Any]


class Batcher(Generic[Request]):
    """Collects requests into batches for a model and a database.

    Parameters
    ----------
    score : takes the requests of a batch, returns a result for each
    write : takes the results of `score`, returns an answer or an exception for each request
    max_queue : maximum number of rows that wait or are in progress
    max_batch : maximum rows per batch, unless a single request has more
    max_wait : seconds that the first row of a batch waits for more
    timeout : seconds after which a request that is not scored, or not written, fails; it may
        still be written afterwards
    on_batch : called with the number of rows of every batch
    """

    def __init__(
        self,
        score: Callable[[Sequence[Request]], Sequence[Any]],
        write: Callable[[Any], Sequence[_Outcome]],
        *,
        max_queue: int,
        max_batch: int,
        max_wait: float,
        timeout: float,
        on_batch: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self._score, self._write, self._on_batch = score, write, on_batch
        self._max_queue, self._max_batch = max_queue, max_batch
        self._max_wait, self._timeout = max_wait, timeout
        # Owned by the event loop: waiting requests, and batches not written yet.
        self._waiting: deque[Waiting[Request]] = deque()
        self._waiting_rows = self._depth = 0
        self._unwritten: dict[int, list[Waiting[Request]]] = {}
        self._busy = self._stopping = False
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # Read by the threads.
        self._to_score: queue.SimpleQueue[list[Waiting[Request]] | None] = queue.SimpleQueue()
        self._to_write: queue.Queue[tuple[list[Waiting[Request]], Any] | None] = queue.Queue(1)
        self._threads: list[threading.Thread] = []

    @property
    def depth(self) -> int:
        """Number of rows that wait or are in progress."""
        return self._depth

    def start(self) -> None:
        """Start both threads; call it from the event loop."""
        self._loop = asyncio.get_running_loop()
        for target, name in ((self._run_scoring, "scoring"), (self._run_writing, "writing")):
            thread = threading.Thread(target=target, name=f"calibrant-{name}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._sweep()

    async def submit(self, request: Request, rows: int) -> Any:
        """Wait for the answer to a request; raise `QueueFull` at once if there is no room."""
        assert self._loop is not None, "call start first"
        if self._depth + rows > self._max_queue or self._stopping:
            raise QueueFull
        future = self._loop.create_future()
        self._waiting.append(Waiting(request, rows, time.perf_counter(), future))
        self._depth += rows
        self._waiting_rows += rows
        if not self._busy:
            self._schedule_batch()
        return await future

    async def stop(self, seconds: float) -> bool:
        """Answer open requests, then stop both threads; return whether they stopped in time."""
        self._stopping = True
        until = time.monotonic() + seconds
        while self._depth and time.monotonic() < until:
            await asyncio.sleep(_DRAIN_EVERY)
        self._to_score.put(None)
        while self._threads_alive() and time.monotonic() < until:
            await asyncio.sleep(_DRAIN_EVERY)
        return not self._threads_alive()

    def _threads_alive(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _schedule_batch(self) -> None:
        """Send a full batch at once, or a partial one after `max_wait`."""
        if self._waiting_rows >= self._max_batch or self._max_wait == 0:
            self._send_batch()
        elif self._timer is None:
            assert self._loop is not None
            self._timer = self._loop.call_later(self._max_wait, self._send_batch)

    def _send_batch(self) -> None:
        """Send the scoring thread its next batch."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._expire_waiting()
        if self._busy or not self._waiting:
            return
        batch: list[Waiting[Request]] = []
        rows = 0
        while self._waiting and (not batch or rows + self._waiting[0].rows <= self._max_batch):
            batch.append(self._waiting.popleft())
            rows += batch[-1].rows
        self._waiting_rows -= rows
        self._busy = True
        self._to_score.put(batch)

    def _run_scoring(self) -> None:
        assert self._loop is not None
        while (batch := self._to_score.get()) is not None:
            self._on_batch(sum(each.rows for each in batch))
            self._score_batch(batch)
            self._loop.call_soon_threadsafe(self._on_idle)
        self._to_write.put(None)

    def _score_batch(self, batch: list[Waiting[Request]]) -> None:
        assert self._loop is not None
        try:
            scored = self._score([each.request for each in batch])
        except Exception as error:
            if len(batch) == 1:
                self._loop.call_soon_threadsafe(self._resolve, batch, [error])
                return
            self._score_singly(batch)
            return
        self._queue_write(batch, scored)

    def _score_singly(self, batch: list[Waiting[Request]]) -> None:
        """Score each request alone, so that one failure does not fail the batch."""
        assert self._loop is not None
        scored: list[tuple[Waiting[Request], Any]] = []
        for each in batch:
            try:
                scored += [(each, result) for result in self._score([each.request])]
            except Exception as error:
                self._loop.call_soon_threadsafe(self._resolve, [each], [error])
        if scored:  # still written in one commit
            self._queue_write([each for each, _ in scored], [result for _, result in scored])

    def _queue_write(self, batch: list[Waiting[Request]], scored: Any) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._on_scored, batch)
        self._to_write.put((batch, scored))

    def _run_writing(self) -> None:
        assert self._loop is not None
        while (item := self._to_write.get()) is not None:
            batch, scored = item
            try:
                answers = self._write(scored)
            except Exception as error:
                answers = [error] * len(batch)
            self._loop.call_soon_threadsafe(self._on_written, batch, answers)

    def _on_idle(self) -> None:
        """Send the requests that arrived while the scoring thread was busy."""
        self._busy = False
        if self._waiting:
            self._send_batch()

    def _on_scored(self, batch: list[Waiting[Request]]) -> None:
        now = time.perf_counter()
        for each in batch:
            each.since = now
        self._unwritten[id(batch)] = batch

    def _on_written(self, batch: list[Waiting[Request]], answers: Sequence[_Outcome]) -> None:
        del self._unwritten[id(batch)]
        self._resolve(batch, answers)

    def _sweep(self) -> None:
        """Expire requests that waited too long for the model or the database."""
        assert self._loop is not None
        self._expire_waiting()
        now = time.perf_counter()
        for each in (each for batch in self._unwritten.values() for each in batch):
            if now - each.since > self._timeout and not each.future.done():
                each.future.set_exception(Expired())  # its rows count until they are written
        if not self._stopping or self._depth:
            self._loop.call_later(_SWEEP_EVERY, self._sweep)

    def _expire_waiting(self) -> None:
        now = time.perf_counter()
        while self._waiting and now - self._waiting[0].since > self._timeout:
            expired = self._waiting.popleft()
            self._waiting_rows -= expired.rows
            self._resolve([expired], [Expired()])

    def _resolve(self, batch: Sequence[Waiting[Request]], answers: Sequence[_Outcome]) -> None:
        for each, answer in zip(batch, answers, strict=True):
            self._depth -= each.rows
            if each.future.done():  # the client disconnected, or it expired
                continue
            if isinstance(answer, BaseException):
                each.future.set_exception(answer)
            else:
                each.future.set_result(answer)
