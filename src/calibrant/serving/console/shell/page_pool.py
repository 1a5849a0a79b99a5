"""Where pages are computed that take long: a few at a time, so that all else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from calibrant.serving.http.problems import Problem

__all__ = ["Workshop"]

Made = TypeVar("Made")

_FULL = "the service computes other pages just now: load this one again in a moment."
_LONG = "the page takes long to compute: load it again in a moment."


class Workshop:
    """Threads of its own for long computations; belongs to one event loop.

    Whoever only reads the store, such as a probe that asks whether the service is ready, never
    waits behind them. Beyond `most` that wait, more are told to come again.

    Parameters
    ----------
    threads : computations at a time
    most : those under way and those that wait

    Examples
    --------
    >>> workshop = Workshop()
    >>> asyncio.run(workshop.do(10.0, lambda: 17))
    17
    >>> workshop.close()
    """

    def __init__(self, threads: int = 2, most: int = 16) -> None:
        self._pool = ThreadPoolExecutor(threads, "calibrant-console")
        self._most, self._here = most, 0

    async def do(self, seconds: float, make: Callable[[], Made]) -> Made:
        """Return what `make` returns; a `Problem` where there is too much to do, or it takes long.

        What still waits when its time is over is not begun; what is under way is finished.
        """
        if self._here >= self._most:
            raise Problem.busy(_FULL)
        self._here += 1
        try:
            under_way = asyncio.get_running_loop().run_in_executor(self._pool, make)
            return await asyncio.wait_for(under_way, seconds)
        except TimeoutError:
            raise Problem.busy(_LONG) from None
        finally:
            self._here -= 1

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
