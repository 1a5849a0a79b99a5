"""The service behind the routes: a bundle, a batcher, a store, and who may use them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from http import HTTPStatus
from typing import Any

from calibrant.client.messages import PredictBody
from calibrant.errors import CalibrantError, InputError, StoreUnavailable
from calibrant.serving.access import Access
from calibrant.serving.batching import Batcher, Expired, QueueFull
from calibrant.serving.bundle_slot import BundleSlot, Served
from calibrant.serving.http.problems import Problem
from calibrant.serving.metrics import Metrics
from calibrant.serving.recording import Recorder
from calibrant.serving.request_inputs import Faulty, checked_inputs
from calibrant.serving.scoring import Asked, score
from calibrant.serving.settings import Settings
from calibrant.serving.store_calls import Readiness, within
from calibrant.store import Key, Store
from calibrant.store.records import new_id

__all__ = ["Service"]

_LOOK_EVERY = 1.0
_FLUSH_EVERY = 30
"""Looks at the folder between two writes of when keys were last used."""

_log = logging.getLogger("calibrant.serving")


class Service:
    """All that answers requests.

    `prepare` opens what is needed and says at once what is wrong with it; `start` and `stop` belong
    to the event loop.

    Parameters
    ----------
    settings : what it was started with
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = Store(settings.db)
        self.readiness = Readiness(self.store)
        self.slot = BundleSlot(settings.bundle, settings.device)
        self.metrics = Metrics()
        self.recorder = Recorder(self.store, self.metrics, settings.inputs)
        self.access = Access(self.store.keys, needed=settings.keys_needed, workers=settings.workers)
        self.draining = False
        self.end_by: float | None = None  # the deadline of a stop, on `time.monotonic`
        self.erasing = asyncio.Lock()
        self._batcher: Batcher[Asked] = Batcher(
            score,
            self.recorder.write,
            max_queue=settings.max_queue,
            max_batch=settings.max_batch,
            max_wait=settings.max_wait,
            timeout=settings.timeout,
            seen=self.metrics.batched,
        )
        self.metrics.watch_queue(lambda: self._batcher.depth)
        self._watching: asyncio.Task[None] | None = None

    def prepare(self) -> Served:
        """Load the bundle and bring the database up to date."""
        served = self.slot.load()  # first: a wrong folder must not leave a database behind
        self.store.prepare()
        with contextlib.suppress(StoreUnavailable):  # the first prediction does it then
            self.recorder.note(served)
        return served

    def start(self) -> None:
        """Begin to serve, on the running event loop."""
        _leave_a_core(self.slot.current, self.settings.workers)
        self._batcher.start()
        self._watching = asyncio.create_task(self._watch())
        loop = asyncio.get_running_loop()
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError, AttributeError):
            loop.add_signal_handler(signal.SIGHUP, self._look_soon)

    async def stop(self) -> None:
        """Answer what is under way, write down what is left, and close the store."""
        self.draining = True
        if self._watching is not None:
            self._watching.cancel()
        drain = self.settings.drain
        left = drain if self.end_by is None else max(1.0, self.end_by - time.monotonic())
        ended = await self._batcher.stop(left)
        if not ended:
            _log.error("requests were still under way after %g s", drain)
        with contextlib.suppress(CalibrantError):
            await self.access.flush()
        self.access.close()
        self.store.close()

    async def predict(
        self, asked: PredictBody, body: bytes, *, key: Key | None, retry: str | None, since: float
    ) -> bytes:
        """Return the answer to a request as JSON; it is on record then.

        Parameters
        ----------
        asked, body : what was asked, and the bytes that said it
        key : the key it came with
        retry : its idempotency key
        since : when it came, on the clock of `time.perf_counter`
        """
        if self.draining:
            raise Problem.busy("the service is stopping: send the request again.")
        request = new_id() if retry is None else f"{'' if key is None else key.id}:{retry}"
        try:
            return await self._decided(asked, body, key, request, since)
        except (InputError, Problem) as refused:
            if retry is None or getattr(refused, "status", 422) != 422:
                raise
            # It may have been answered before another bundle came, which cannot read it.
            stored = await within(
                self.settings.timeout, lambda: self.recorder.stored(request, body)
            )
            if stored is None:
                raise
            return _answered(stored)

    async def _decided(
        self, asked: PredictBody, body: bytes, key: Key | None, request: str, since: float
    ) -> bytes:
        made = self._asked(asked, body, key, request, since)
        try:
            answer = await self._batcher.submit(made, len(made.rows))
        except QueueFull:
            raise Problem.busy("too many requests wait: send this one again later.") from None
        except Expired:
            raise Problem.busy("the request waited too long: send it again.") from None
        return _answered(answer)

    def reload(self) -> Served:
        """Load the folder again; `BundleError` where it is refused and the old bundle goes on."""
        before = self.slot.current
        try:
            now = self.slot.reload()
        finally:
            self.metrics.refused(self.slot.refused is not None)
        if now is not before:
            self.metrics.swapped()
        return now

    def _asked(
        self, asked: PredictBody, body: bytes, key: Key | None, request: str, since: float
    ) -> Asked:
        served, settings = self.slot.current, self.settings
        if len(asked.inputs) > settings.max_inputs:
            raise Problem(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"{len(asked.inputs):,} inputs are too many, at most {settings.max_inputs:,} are "
                "taken at a time: send several requests.",
            )
        _check_point(asked.point, served)
        try:
            rows = checked_inputs(asked.inputs, served, max_text=settings.max_text)
        except Faulty as fault:
            errors = [{"where": fault.where, "message": fault.message}]
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(fault), errors=errors) from None
        return Asked(
            served=served,
            rows=rows,
            inputs=asked.inputs,
            body=body,
            request=request,
            since=since,
            unit=asked.unit,
            use_case=asked.use_case,
            branch=asked.branch,
            point=asked.point,
            key=None if key is None else key.id,
        )

    async def _watch(self) -> None:
        """Look for a newer bundle now and then, and note when keys were last used."""
        looks = 0
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            looks += 1
            self.metrics.note_queue()
            try:
                await asyncio.to_thread(self._look)
                if looks % _FLUSH_EVERY == 0:
                    await self.access.flush()
            except CalibrantError as error:
                _log.warning("%s", error)
            except Exception:
                _log.exception("looking for a newer bundle failed")

    def _look(self) -> None:
        if self.slot.look():
            self.metrics.swapped()
        self.metrics.refused(self.slot.refused is not None)

    def _look_soon(self) -> None:
        asyncio.get_running_loop().run_in_executor(None, self._look)


def _answered(answer: Any) -> bytes:
    if isinstance(answer, Problem):
        raise answer
    assert isinstance(answer, bytes)
    return answer


def _check_point(point: int | None, served: Served) -> None:
    points = len(served.bundle.points)
    if point is not None and point >= points:
        had = f"positions from 0 to {points - 1}" if points else "no operating points"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"point: the bundle has {had}, got {point}.")


def _leave_a_core(served: Served, workers: int) -> None:
    """Let the model compute on its share of the cores, but for one that answers requests."""
    if served.bundle.scorer is not None:
        from calibrant.models.threads import leave_a_core

        leave_a_core(workers)
