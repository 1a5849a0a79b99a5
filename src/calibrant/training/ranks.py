"""Several processes that train one network: started, watched, and ended together."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import connection, get_context
from typing import Any

import torch

from calibrant.errors import CalibrantError, TrainingError

__all__ = ["leave_with", "naming_lost_ranks", "run_on_ranks"]

_LOST = (
    "Connection closed by peer", "Connection reset by peer", "Broken pipe", "Socket Timeout",
    "remote process exited", "NCCL communicator was aborted", "Connection refused",
)  # fmt: skip


@contextmanager
def naming_lost_ranks() -> Iterator[None]:
    """Say in one sentence that another process of the run is gone."""
    try:
        yield
    except RuntimeError as error:  # torch's own errors of this kind are subclasses
        if not _is_one_of_many() or not _is_lost(error):
            raise
        raise TrainingError(
            "another process of this run ended or cannot be reached: what it said last tells why; "
            "run again to go on from the last checkpoint."
        ) from error


def _is_one_of_many() -> bool:
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


def _is_lost(error: RuntimeError) -> bool:
    by_kind = isinstance(error, torch.distributed.DistError)
    return by_kind or any(sign in str(error) for sign in _LOST)


def run_on_ranks(target: Callable[..., None], arguments: Sequence[Any], n: int) -> None:
    """Call a function in n new processes at once, each with the variables that `torchrun` sets.

    `calibrant.training.train` finds the others by these. What the function raises on one rank is
    raised here, after all others were ended: a `CalibrantError` as it is, anything else, or a
    process that was killed, as a `TrainingError`.

    Examples
    --------
    >>> run_on_ranks(time.sleep, [0], 2)
    """
    context = get_context("spawn")  # torch's threads do not survive a fork
    messages = context.SimpleQueue()
    port = _free_port()
    processes = [
        context.Process(
            target=_run, args=(target, tuple(arguments), rank, n, port, messages, os.getpid())
        )
        for rank in range(n)
    ]
    try:
        _start(processes)
        ended = _watched(processes)
        if ended is not None:
            raise _reason(ended, processes[ended].exitcode, n, messages)
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
        for process in processes:
            if process.pid is not None:
                process.join()


def _start(processes: Sequence[Any]) -> None:
    """Start all of them deaf to Ctrl-C: this process decides what it means."""
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_main else None
    try:
        for process in processes:
            process.start()
    finally:
        if in_main:
            signal.signal(signal.SIGINT, before)


def _watched(processes: Sequence[Any]) -> int | None:
    """Wait until all are done; return the rank of the first that failed."""
    running = {process.sentinel: rank for rank, process in enumerate(processes)}
    while running:
        for sentinel in connection.wait(list(running)):
            rank = running.pop(sentinel)
            processes[rank].join()
            if processes[rank].exitcode:
                return int(rank)
    return None


def _reason(rank: int, code: int | None, n: int, messages: Any) -> CalibrantError:
    """Return the error of the rank that failed, by its own words where it left some."""
    told: dict[int, CalibrantError | str] = {}
    while not messages.empty():
        of, what = messages.get()
        told.setdefault(of, what)
    # A rank that lost another one says only that: the other knows why.
    first = sorted(told, key=lambda of: "another process of this run" in str(told[of]))
    if first:
        own = told[first[0]]
        return own if isinstance(own, CalibrantError) else TrainingError(own)
    by = f"killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with {code}"
    return TrainingError(
        f"process {rank} of {n} was {by}, perhaps for want of memory: run again to go on from the "
        "last checkpoint, with a smaller batch_size if it happens again."
    )


def _run(
    target: Callable[..., None],
    arguments: tuple[Any, ...],
    rank: int,
    n: int,
    port: int,
    messages: Any,
    parent: int,
) -> None:
    """Be one rank."""
    threading.Thread(target=leave_with, args=(parent,), daemon=True).start()
    told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": n, "LOCAL_WORLD_SIZE": n}
    os.environ.update({name: str(value) for name, value in told.items()})
    os.environ.update({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
    try:
        target(*arguments)
    except Exception as error:
        ours = isinstance(error, CalibrantError)
        messages.put((rank, error if ours else f"{type(error).__name__}: {error}"))
        raise SystemExit(1) from None


def leave_with(parent: int) -> None:
    """End this process when its parent is gone; for a thread of its own."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
