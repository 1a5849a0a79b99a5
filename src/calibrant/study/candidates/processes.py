"""Worker processes: start, progress messages and termination."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from calibrant.cores import usable_cores
from calibrant.errors import InputError, TrainingError

Progress = Callable[[str], None]
"""Callback for one-line messages."""

_GUARD = '`if __name__ == "__main__":`'


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
def send_arguments(context: SpawnContext, args: tuple[Any, ...], n: int) -> Iterator[Any]:
    """Yield a queue with the pickled arguments of n processes.

    As arguments of `Process`, they would be written to a pipe by `start`, which blocks forever if
    the new process ends before it reads them.
    """
    queue = context.Queue()
    data = pickle.dumps(args)
    for _ in range(n):
        queue.put(data)
    try:
        yield queue
    finally:
        queue.cancel_join_thread()  # a process that ended early did not read its arguments
        queue.close()


@contextmanager
def worker_pool(
    jobs: int, progress: Progress, start: Callable[..., None], args: tuple[Any, ...], saved: str
) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of worker processes, which are terminated when the block is left.

    Each gets its share of the cores, leaves Ctrl-C to this process, and exits if this one dies.
    `saved` names the results that survive a killed worker, for the error message.
    """
    with (
        forward_progress(progress) as (context, messages),
        send_arguments(context, args, jobs) as arguments,
    ):
        init_args = (start, arguments, jobs, messages, os.getpid())
        pool = ProcessPoolExecutor(jobs, context, _init_process, init_args)
        try:
            yield pool
        except BrokenProcessPool:
            raise _broken_pool_error(_stop(pool), saved) from None
        finally:
            _stop(pool)


def refuse_reimported_script() -> None:
    """Raise `InputError` in a new process that is still importing the script that started it."""
    # multiprocessing itself checks this attribute before it starts a process.
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise InputError(
            "the study was started again by one of its own processes, which imports your script: "
            f"call run_study under {_GUARD}."
        )


def _stop(pool: ProcessPoolExecutor) -> list[Any]:
    """Terminate the processes of a pool, which would finish training otherwise; return them."""
    processes = list((pool._processes or {}).values())
    for process in processes:
        process.terminate()
    pool.shutdown(wait=True, cancel_futures=True)
    return processes


def _broken_pool_error(processes: Sequence[Any], saved: str) -> TrainingError:
    if any((process.exitcode or 0) > 0 for process in processes):  # not ended by a signal
        return TrainingError(
            "a training process failed while it imported your script, as each of them does: call "
            f"run_study under {_GUARD}, or set jobs=1."
        )
    return TrainingError(
        "a training process was killed, probably because memory ran out: run again with "
        f"--jobs 1; {saved} are kept."
    )


def _forward(messages: Any, progress: Progress) -> None:
    while (message := messages.get()) is not None:
        progress(message)


def _init_process(
    start: Callable[..., None], arguments: Any, jobs: int, messages: Any, parent: int
) -> None:
    """Set up a worker process: signals, threads, the watch on its parent, and its inputs."""
    from calibrant.models.cores import use_threads
    from calibrant.training.ranks import exit_with_parent

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    use_threads(max(1, usable_cores() // jobs))
    threading.Thread(target=exit_with_parent, args=(parent,), daemon=True).start()
    start(messages.put, *pickle.loads(arguments.get()))
