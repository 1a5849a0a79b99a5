"""Store calls from the event loop, with timeouts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from calibrant.errors import StoreError, StoreUnavailable
from calibrant.store import Store

Result = TypeVar("Result")

_log = logging.getLogger("calibrant.serving")

_READY_TIMEOUT = 2.0  # Timeout of the readiness check in seconds


async def within(seconds: float, call: Callable[[], Result]) -> Result:
    """Run a store call in a thread; raise `StoreUnavailable` on timeout.

    After a timeout the call continues, and may still succeed.
    """
    try:
        return await asyncio.wait_for(asyncio.to_thread(call), seconds)
    except TimeoutError:
        raise _timeout_error(seconds) from None


async def wait_shared(task: asyncio.Task[Result], seconds: float) -> Result:
    """Wait for a task that others wait for too; raise `StoreUnavailable` on timeout.

    The task continues after a timeout, and when the waiting task is cancelled.
    """
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        raise _timeout_error(seconds)
    return task.result()


def retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Mark the exception of a task as retrieved, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()


class Readiness:
    """Readiness check of a store; concurrent callers share one check.

    Otherwise a store that hangs would block a thread per caller. An outage is logged when it starts
    and when it ends.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pending: asyncio.Task[None] | None = None
        self._usable = True
        self.leaving = False
        """Whether the service is about to stop; it still answers, but reports not ready."""

    async def check(self) -> None:
        """Raise `StoreError` if the store is not usable, or does not respond in time."""
        try:
            await self._check()
        except StoreError as error:
            if self._usable:
                _log.warning("the database is not usable: %s", error)
            self._usable = False
            raise
        if not self._usable:
            _log.warning("the database is usable again")
        self._usable = True

    async def _check(self) -> None:
        if self._pending is None or self._pending.done():
            self._pending = asyncio.create_task(asyncio.to_thread(self._store.check))
            self._pending.add_done_callback(retrieve_exception)
        await wait_shared(self._pending, _READY_TIMEOUT)


def _timeout_error(seconds: float) -> StoreUnavailable:
    return StoreUnavailable(f"the store did not respond within {seconds:g} s: try again.")
