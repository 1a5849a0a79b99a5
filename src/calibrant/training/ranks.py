"""Start, watch and terminate the processes that train one network together."""

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

_LOST_MESSAGES = (
    "Connection closed by peer", "Connection reset by peer", "Broken pipe", "Socket Timeout",
    "remote process exited", "NCCL communicator was aborted", "Connection refused",
)  # fmt: skip


@contextmanager
def explain_lost_ranks() -> Iterator[None]:
    """Turn connection errors into a `TrainingError` about a lost process."""
    try:
        yield
    except RuntimeError as error:  # torch's own errors of this kind are subclasses
        if not _is_one_of_many() or not _is_lost(error):
            raise
        raise TrainingError(
            "another process of this run ended or cannot be reached: see its last message for the "
            "reason; run again to resume from the last checkpoint."
        ) from error


def _is_one_of_many() -> bool:
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


def _is_lost(error: RuntimeError) -> bool:
    by_kind = isinstance(error, torch.distributed.DistError)
    return by_kind or any(sign in str(error) for sign in _LOST_MESSAGES)


def run_on_ranks(target: Callable[..., None], arguments: Sequence[Any], n: int) -> None:
    """Call a function in n new processes, each with the environment variables of `torchrun`.

    `calibrant.training.train` connects them by these. If one rank fails, all others are terminated
    and its error is raised here: a `CalibrantError` unchanged, any other error or a killed process
    as a `TrainingError`.

    Examples
    --------
    >>> run_on_ranks(time.sleep, [0], 2)
    """
    context = get_context("spawn")  # torch's threads do not survive a fork
    messages = context.SimpleQueue()
    port = _free_port()
    processes = [
        context.Process(
            target=_run_rank, args=(target, tuple(arguments), rank, n, port, messages, os.getpid())
        )
        for rank in range(n)
    ]
    try:
        _start_all(processes)
        ended = _wait_for_all(processes)
        if ended is not None:
            raise _failure_error(ended, processes[ended].exitcode, n, messages)
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
        for process in processes:
            if process.pid is not None:
                process.join()


def _start_all(processes: Sequence[Any]) -> None:
    """Start the processes with Ctrl-C ignored: this process handles it."""
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_main else None
    try:
        for process in processes:
            process.start()
    finally:
        if in_main:
            signal.signal(signal.SIGINT, before)


def _wait_for_all(processes: Sequence[Any]) -> int | None:
    """Wait for all processes; return the rank of the first that failed, or None."""
    running = {process.sentinel: rank for rank, process in enumerate(processes)}
    while running:
        for sentinel in connection.wait(list(running)):
            rank = running.pop(sentinel)
            processes[rank].join()
            if processes[rank].exitcode:
                return int(rank)
    return None


def _failure_error(rank: int, code: int | None, n: int, messages: Any) -> CalibrantError:
    """Return the error of the rank that failed, from its message if it sent one."""
    errors: dict[int, CalibrantError | str] = {}
    while not messages.empty():
        sender, message = messages.get()
        errors.setdefault(sender, message)
    # A rank that lost another one does not know the cause, so its message comes last.
    ranks = sorted(errors, key=lambda rank: "another process of this run" in str(errors[rank]))
    if ranks:
        error = errors[ranks[0]]
        return error if isinstance(error, CalibrantError) else TrainingError(error)
    if code is not None and code > 0:  # a rank sends its errors once it runs
        return TrainingError(
            f"process {rank} of {n} failed while it imported your script, as each of them does: "
            'call run_study under `if __name__ == "__main__":`, or set devices=1.'
        )
    killer = signal.Signals(-(code or 0)).name
    return TrainingError(
        f"process {rank} of {n} was killed by {killer}, perhaps because memory ran out: run again "
        "to resume from the last checkpoint, with a smaller batch_size if it happens again."
    )


def _run_rank(
    target: Callable[..., None],
    arguments: tuple[Any, ...],
    rank: int,
    n: int,
    port: int,
    messages: Any,
    parent: int,
) -> None:
    """Run the target as one rank."""
    threading.Thread(target=exit_with_parent, args=(parent,), daemon=True).start()
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": n, "LOCAL_WORLD_SIZE": n}
    os.environ.update({name: str(value) for name, value in variables.items()})
    os.environ.update({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
    try:
        target(*arguments)
        if _is_one_of_many():  # its threads must not outlive the interpreter
            torch.distributed.destroy_process_group()
    except Exception as error:
        expected = isinstance(error, CalibrantError)
        messages.put((rank, error if expected else f"{type(error).__name__}: {error}"))
        raise SystemExit(1) from None


def exit_with_parent(parent: int) -> None:
    """Exit this process when its parent is gone; run in a daemon thread."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])
