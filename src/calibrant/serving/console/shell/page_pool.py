"""Bounded worker pool for slow pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from calibrant.serving.http.problems import Problem

Result = TypeVar("Result")

_POOL_FULL = "the service is busy computing other pages: reload this page in a moment."
_TOO_SLOW = "the page takes too long to compute: reload it in a moment."


class PagePool:
    """Thread pool for slow page computations, bound to one event loop.

    Requests that only read the store, such as readiness probes, do not use it and never wait for
    it. A request is refused when `max_pending` others are running or queued.
    """

    def __init__(self, threads: int = 2, max_pending: int = 16) -> None:
        self._pool = ThreadPoolExecutor(threads, "calibrant-console")
        self._max_pending, self._pending = max_pending, 0

    async def run(self, timeout: float, compute: Callable[[], Result]) -> Result:
        """Return `compute()`, or raise a `Problem` if the pool is full or the timeout passes.

        A computation still queued at the timeout never starts; a running one finishes.
        """
        if self._pending >= self._max_pending:
            raise Problem.busy(_POOL_FULL)
        self._pending += 1
        try:
            future = asyncio.get_running_loop().run_in_executor(self._pool, compute)
            return await asyncio.wait_for(future, timeout)
        except TimeoutError:
            raise Problem.busy(_TOO_SLOW) from None
        finally:
            self._pending -= 1

    def close(self) -> None:
        """Cancel queued computations and accept no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
