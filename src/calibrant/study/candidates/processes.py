"""Worker processes: start, progress messages and termination."""

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

Progress = Callable[[str], None]
"""Callback for one-line messages."""


class _Process(SpawnProcess):
    """A process that ignores Ctrl-C from its start, imports included; its parent handles it."""

    def start(self) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited by the child
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Context(SpawnContext):
    Process = _Process


@contextmanager
def forward_progress(progress: Progress) -> Iterator[tuple[Any, Any]]:
    """Yield a multiprocessing context and a queue whose messages go to `progress`."""
    context = _Context()  # torch's threads do not survive a fork
    messages = context.Queue()
    forwarder = threading.Thread(target=_forward, args=(messages, progress), daemon=True)
    forwarder.start()
    try:
        yield context, messages
    finally:
        messages.put(None)
        forwarder.join(timeout=5)


@contextmanager
def worker_pool(
    jobs: int, progress: Progress, start: Callable[..., None], args: tuple[Any, ...], saved: str
) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of worker processes, which are terminated when the block is left.

    Each gets its share of the cores, leaves Ctrl-C to this process, and exits if this one dies.
    `saved` names the results that survive a killed worker, for the error message.
    """
    with forward_progress(progress) as (context, messages):
        init_args = (start, args, jobs, messages, os.getpid())
        pool = ProcessPoolExecutor(jobs, context, _init_process, init_args)
        try:
            yield pool
        except BrokenProcessPool:
            raise TrainingError(
                "a training process was killed, probably because memory ran out: run again with "
                f"--jobs 1; {saved} are kept."
            ) from None
        finally:
            for process in list((pool._processes or {}).values()):  # otherwise they finish training
                process.terminate()
            pool.shutdown(wait=True, cancel_futures=True)


def _forward(messages: Any, progress: Progress) -> None:
    while (message := messages.get()) is not None:
        progress(message)


def _init_process(
    start: Callable[..., None], args: tuple[Any, ...], jobs: int, messages: Any, parent: int
) -> None:
    """Set up a worker process: signals, threads, the watch on its parent, and its inputs."""
    from calibrant.models.cores import use_threads
    from calibrant.training.ranks import exit_with_parent

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    use_threads(max(1, usable_cores() // jobs))
    threading.Thread(target=exit_with_parent, args=(parent,), daemon=True).start()
    start(messages.put, *args)
