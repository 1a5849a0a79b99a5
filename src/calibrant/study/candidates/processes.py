"""Processes that work beside this one: how they begin, speak and end."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from calibrant.cores import usable_cores
from calibrant.errors import TrainingError

__all__ = ["Progress", "passed_on", "working_side_by_side"]

Progress = Callable[[str], None]
"""Takes a message of one line."""


class _Process(SpawnProcess):
    """A process that leaves Ctrl-C to its parent from its first moment, imports included."""

    def start(self) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # is inherited
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Context(SpawnContext):
    Process = _Process


@contextmanager
def passed_on(progress: Progress) -> Iterator[tuple[Any, Any]]:
    """Lend a way to start processes, and a queue whose messages go to `progress`."""
    context = _Context()  # torch's threads do not survive a fork
    messages = context.Queue()
    teller = threading.Thread(target=_tell, args=(messages, progress), daemon=True)
    teller.start()
    try:
        yield context, messages
    finally:
        messages.put(None)
        teller.join(timeout=5)


@contextmanager
def working_side_by_side(
    jobs: int, progress: Progress, start: Callable[..., None], args: tuple[Any, ...], kept: str
) -> Iterator[ProcessPoolExecutor]:
    """Lend processes; when the block is left, however it is left, none of them works on.

    Each has its share of the cores, leaves Ctrl-C to this process, and ends when this one is gone.
    """
    with passed_on(progress) as (context, messages):
        begin = (start, args, jobs, messages, os.getpid())
        pool = ProcessPoolExecutor(jobs, context, _begin, begin)
        try:
            yield pool
        except BrokenProcessPool:
            raise TrainingError(
                "a training process was killed, probably for want of memory: run it again with "
                f"--jobs 1; {kept} are kept."
            ) from None
        finally:
            for process in list((pool._processes or {}).values()):  # they would train to the end
                process.terminate()
            pool.shutdown(wait=True, cancel_futures=True)


def _tell(messages: Any, progress: Progress) -> None:
    while (message := messages.get()) is not None:
        progress(message)


def _begin(
    start: Callable[..., None], args: tuple[Any, ...], jobs: int, messages: Any, parent: int
) -> None:
    """Set a process up: its signals, its share of the cores, its end, and what it works on."""
    from calibrant.models.cores import use_threads
    from calibrant.training.ranks import leave_with

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    use_threads(max(1, usable_cores() // jobs))
    threading.Thread(target=leave_with, args=(parent,), daemon=True).start()
    start(messages.put, *args)
