"""Calls on the store that the event loop waits for, but not for ever."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from calibrant.errors import StoreError, StoreUnavailable
from calibrant.store import Store

__all__ = ["Readiness", "noted", "shared", "within"]

Found = TypeVar("Found")

_log = logging.getLogger("calibrant.serving")

_SOON = 2.0
"""Seconds within which a store that is ready says so."""


async def within(seconds: float, call: Callable[[], Found]) -> Found:
    """Run a call on the store in a thread; raise `StoreUnavailable` where it takes too long.

    The call goes on then, and may still succeed.

    Examples
    --------
    >>> asyncio.run(within(10.0, lambda: 17))
    17
    """
    try:
        return await asyncio.wait_for(asyncio.to_thread(call), seconds)
    except TimeoutError:
        raise _silent(seconds) from None


async def shared(task: asyncio.Task[Found], seconds: float) -> Found:
    """Wait for what others wait for too; raise `StoreUnavailable` where it takes too long.

    The task goes on then, and also where who waits is told to end.
    """
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        raise _silent(seconds)
    return task.result()


def noted(task: asyncio.Task[Any]) -> None:
    """Take note of a failure that nobody may wait for any more."""
    if not task.cancelled():
        task.exception()


class Readiness:
    """Asks whether a store can be used, once at a time, however many want to know.

    A store that hangs would else hold a thread for everyone who asks. What is wrong goes into the
    log when it begins and when it is over.

    Parameters
    ----------
    store : is asked
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asking: asyncio.Task[None] | None = None
        self._usable = True
        self.leaving = False
        """Whether the service is about to stop: it still answers, but is to be left alone."""

    async def check(self) -> None:
        """Raise `StoreError` where the store cannot be used, or does not say so soon."""
        try:
            await self._check()
        except StoreError as error:
            if self._usable:
                _log.warning("the database cannot be used: %s", error)
            self._usable = False
            raise
        if not self._usable:
            _log.warning("the database can be used again")
        self._usable = True

    async def _check(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(asyncio.to_thread(self._store.check))
            self._asking.add_done_callback(noted)
        await shared(self._asking, _SOON)


def _silent(seconds: float) -> StoreUnavailable:
    return StoreUnavailable(f"the store did not answer within {seconds:g} s: try again.")
