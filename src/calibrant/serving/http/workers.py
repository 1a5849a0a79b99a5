"""Worker processes that share one port: restarted on failure, signalled and stopped together."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any

from prometheus_client import multiprocess


@contextmanager
def handle_signals(handler: Any, *signals: signal.Signals) -> Iterator[None]:
    """Handle signals with `handler` inside the block."""
    previous = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, old in previous.items():
            signal.signal(number, old)


_log = logging.getLogger("calibrant.serving")

_CHECK_EVERY = 0.5
_RESTART_WAIT = 1.0  # Minimum seconds between two starts of a worker, which may fail again

_KILL_AFTER = 5.0  # Seconds after its stop timeout before a worker is killed


class Workers:
    """Starts worker processes and restarts those that exit unexpectedly.

    Each calls `target`, which must be importable, with the shared `listener` until SIGTERM, and has
    `stop_timeout` seconds to exit.
    """

    def __init__(
        self,
        count: int,
        target: Callable[[socket.socket], None],
        listener: socket.socket,
        *,
        stop_timeout: float,
    ) -> None:
        self._target, self._listener, self._stop_timeout = target, listener, stop_timeout
        self._processes: list[SpawnProcess | None] = [None] * count
        self._started = [float("-inf")] * count
        self._stopping = False

    def stop(self) -> None:
        """Make `run` return; may be called by a signal handler."""
        self._stopping = True

    def run(self) -> None:
        """Keep the workers running until `stop`; then stop them and return."""
        with handle_signals(lambda *_: self._send_signal(signal.SIGHUP), signal.SIGHUP):
            try:
                while not self._stopping:
                    for i, process in enumerate(self._processes):
                        if process is None or not process.is_alive():
                            self._start(i, process)
                    wait([each.sentinel for each in self._processes if each], _CHECK_EVERY)
            finally:
                self._stop_all()

    def _start(self, i: int, old: SpawnProcess | None) -> None:
        if old is not None:
            _log.error("process %s exited with %s: starting another", old.pid, old.exitcode)
            multiprocess.mark_process_dead(old.pid)  # type: ignore[no-untyped-call]
            time.sleep(
                max(0.0, min(_RESTART_WAIT, self._started[i] + _RESTART_WAIT - time.monotonic()))
            )
        process = multiprocessing.get_context("spawn").Process(
            target=self._target, args=(self._listener,), name=f"calibrant-{i}"
        )
        self._started[i] = time.monotonic()
        # The worker inherits ignored signals until it installs its own handlers: neither a reload
        # nor Ctrl-C, which reaches all processes of a terminal, kills it while it starts.
        with handle_signals(signal.SIG_IGN, signal.SIGHUP, signal.SIGINT):
            process.start()
        self._processes[i] = process

    def _send_signal(self, number: int) -> None:
        for each in self._processes:
            if each is not None and each.is_alive() and each.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each.pid, number)

    def _stop_all(self) -> None:
        self._listener.close()  # or new connections would wait for a response that never comes
        self._send_signal(signal.SIGTERM)
        until = time.monotonic() + self._stop_timeout + _KILL_AFTER
        for each in self._processes:
            if each is None:
                continue
            each.join(max(0.0, until - time.monotonic()))
            if each.is_alive():
                _log.error("process %s did not exit in time and is killed", each.pid)
                each.kill()
                each.join()


def stop_with_parent(stop: Callable[[], None]) -> None:
    """Call `stop` when the parent process has exited for any reason."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        stop()

    threading.Thread(target=watch, name="calibrant-parent", daemon=True).start()
