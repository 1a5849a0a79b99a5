"""Service behind the routes: bundle, batcher, store and access control."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from calibrant.bundle.reasons import why_unexplained
from calibrant.client.messages import PredictBody
from calibrant.errors import CalibrantError, InputError, StoreUnavailable
from calibrant.serving.access import Access
from calibrant.serving.batching import Batcher, Expired, QueueFull
from calibrant.serving.bundle_slot import BundleSlot, Served
from calibrant.serving.explaining import Explainer
from calibrant.serving.http.problems import Problem
from calibrant.serving.metrics import Metrics
from calibrant.serving.recording import Recorder
from calibrant.serving.scoring import InvalidInput, ScoreRequest, check_inputs, score
from calibrant.serving.settings import Settings
from calibrant.serving.store_calls import Readiness, within
from calibrant.store import Key, Store
from calibrant.store.records import new_id

_CHECK_EVERY = 1.0
_FLUSH_EVERY = 30  # Bundle checks between two writes of when keys were last used

_log = logging.getLogger("calibrant.serving")


class Service:
    """A bundle with its store, batcher and access control.

    `prepare` loads the bundle and opens the database, and raises if either fails; `start` and
    `stop` are called on the event loop.

    Parameters
    ----------
    settings : settings of the service
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
        self.deadline: float | None = None  # deadline of the shutdown, on `time.monotonic`
        self.erase_lock = asyncio.Lock()
        self._batcher: Batcher[ScoreRequest] = Batcher(
            score,
            self.recorder.write,
            max_queue=settings.max_queue,
            max_batch=settings.max_batch,
            max_wait=settings.max_wait,
            timeout=settings.timeout,
            on_batch=self.metrics.count_batch,
        )
        self._explainer = Explainer(max_rows=settings.max_queue, timeout=settings.timeout)
        self.metrics.set_queue_depth(lambda: self._batcher.depth)
        self._watch_task: asyncio.Task[None] | None = None

    def prepare(self) -> Served:
        """Load the bundle and migrate the database."""
        served = self.slot.load()  # first, so that a wrong folder creates no database
        self.store.prepare()
        with contextlib.suppress(StoreUnavailable):  # the first prediction records it
            self.recorder.record_bundle(served)
        return served

    def start(self) -> None:
        """Start serving on the running event loop."""
        _leave_a_core(self.slot.current, self.settings.workers)
        self._batcher.start()
        self._watch_task = asyncio.create_task(self._watch())
        loop = asyncio.get_running_loop()
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError, AttributeError):
            loop.add_signal_handler(signal.SIGHUP, self._check_bundle_soon)

    async def stop(self) -> None:
        """Answer requests in progress, write pending data, and close the store."""
        self.draining = True
        if self._watch_task is not None:
            self._watch_task.cancel()
        drain = self.settings.drain
        left = drain if self.deadline is None else max(1.0, self.deadline - time.monotonic())
        stopped = await self._batcher.stop(left)
        if not stopped:
            _log.error("requests were still in progress after %g s", drain)
        with contextlib.suppress(CalibrantError):
            await self.access.flush()
        self._explainer.close()
        self.access.close()
        self.store.close()

    async def predict(
        self, message: PredictBody, body: bytes, *, key: Key | None, retry: str | None, since: float
    ) -> bytes:
        """Predict, record and return the response as JSON.

        Parameters
        ----------
        message, body : the parsed request and its raw body
        key : API key of the request
        retry : idempotency key
        since : arrival time on the clock of `time.perf_counter`
        """
        if self.draining:
            raise Problem.busy("the service is stopping: send the request again.")
        request = new_id() if retry is None else f"{'' if key is None else key.id}:{retry}"
        try:
            return await self._submit(message, body, key, request, since)
        except (InputError, Problem) as refused:
            if retry is None or getattr(refused, "status", 422) != 422:
                raise
            # It may have been answered by an earlier bundle; the current one cannot use it.
            stored = await within(
                self.settings.timeout, lambda: self.recorder.find_answer(request, body)
            )
            if stored is None:
                raise
            return _unwrap(stored)

    async def _submit(
        self, message: PredictBody, body: bytes, key: Key | None, request: str, since: float
    ) -> bytes:
        score_request = self._to_score_request(message, body, key, request, since)
        if score_request.reasons:
            rows = await self._explainer.explain(score_request.served, score_request.rows)
            score_request = replace(score_request, explained=rows)
        try:
            answer = await self._batcher.submit(score_request, len(score_request.rows))
        except QueueFull:
            raise Problem.busy(
                "too many requests are waiting: send this one again later."
            ) from None
        except Expired:
            raise Problem.busy("the request waited too long: send it again.") from None
        return _unwrap(answer)

    def reload(self) -> Served:
        """Reload the bundle; raise `BundleError` if it is refused and the old one stays."""
        old = self.slot.current
        try:
            new = self.slot.reload()
        finally:
            self.metrics.set_refused(self.slot.refused is not None)
        if new is not old:
            self.metrics.count_swap()
        return new

    def _to_score_request(
        self, message: PredictBody, body: bytes, key: Key | None, request: str, since: float
    ) -> ScoreRequest:
        served, settings = self.slot.current, self.settings
        if len(message.inputs) > settings.max_inputs:
            raise Problem(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"{len(message.inputs):,} inputs exceed the limit of {settings.max_inputs:,} per "
                "request: send several requests.",
            )
        _check_point(message.point, served)
        if message.reasons:
            _check_reasons(message.reasons, served)
        try:
            rows = check_inputs(message.inputs, served, max_text=settings.max_text)
        except InvalidInput as error:
            errors = [{"where": error.where, "message": error.message}]
            raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), errors=errors) from None
        return ScoreRequest(
            served=served,
            rows=rows,
            inputs=message.inputs,
            body=body,
            request=request,
            since=since,
            unit=message.unit,
            use_case=message.use_case,
            branch=message.branch,
            point=message.point,
            reasons=message.reasons or 0,
            key=None if key is None else key.id,
        )

    async def _watch(self) -> None:
        """Periodically check for a newer bundle and write when keys were last used."""
        checks = 0
        while True:
            await asyncio.sleep(_CHECK_EVERY)
            checks += 1
            self.metrics.update_queue()
            try:
                await asyncio.to_thread(self._check_bundle)
                if checks % _FLUSH_EVERY == 0:
                    await self.access.flush()
            except CalibrantError as error:
                _log.warning("%s", error)
            except Exception:
                _log.exception("checking for a newer bundle failed")

    def _check_bundle(self) -> None:
        if self.slot.look():
            self.metrics.count_swap()
        self.metrics.set_refused(self.slot.refused is not None)

    def _check_bundle_soon(self) -> None:
        asyncio.get_running_loop().run_in_executor(None, self._check_bundle)


def _unwrap(answer: Any) -> bytes:
    if isinstance(answer, Problem):
        raise answer
    assert isinstance(answer, bytes)
    return answer


def _check_point(point: int | None, served: Served) -> None:
    points = len(served.bundle.points)
    if point is not None and point >= points:
        available = f"operating points 0 to {points - 1}" if points else "no operating points"
        detail = f"point: the bundle has {available}, got {point}."
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)


def _check_reasons(reasons: int, served: Served) -> None:
    why = why_unexplained(served.bundle.scorer)
    if why is not None:
        detail = f"reasons: {why}: leave reasons out, or send 0, got {reasons}."
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)


def _leave_a_core(served: Served, workers: int) -> None:
    """Limit the model to its share of the cores minus one, which answers requests."""
    if served.bundle.scorer is not None:
        from calibrant.cores import leave_a_core

        leave_a_core(workers)
