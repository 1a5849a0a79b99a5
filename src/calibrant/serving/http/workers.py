"""Several processes that serve on one port: kept alive, told of a newer bundle, ended together."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess

from prometheus_client import multiprocess

from calibrant.serving.http.signals import handled

__all__ = ["Workers", "end_with_parent"]

_log = logging.getLogger("calibrant.serving")

_LOOK_EVERY = 0.5
_PAUSE = 1.0
"""Seconds until a process that ended at once is started again, for it may fail again."""

_MORE = 5.0
"""Seconds beyond its own limit that a stopping process has before it is killed."""


class Workers:
    """Starts processes, and starts one again that ended without being told to.

    Parameters
    ----------
    count : how many
    target : what each does with the listener, until it gets SIGTERM; importable by its name
    listener : the socket that they share
    patience : seconds that each has to end by itself
    """

    def __init__(
        self,
        count: int,
        target: Callable[[socket.socket], None],
        listener: socket.socket,
        *,
        patience: float,
    ) -> None:
        self._target, self._listener, self._patience = target, listener, patience
        self._processes: list[SpawnProcess | None] = [None] * count
        self._started = [float("-inf")] * count
        self._stopping = False

    def stop(self) -> None:
        """Have `run` end; may be called by a signal."""
        self._stopping = True

    def run(self) -> None:
        """Keep the processes alive until `stop`; then end them and return."""
        with handled(lambda *_: self._pass_on(signal.SIGHUP), signal.SIGHUP):
            try:
                while not self._stopping:
                    for i, process in enumerate(self._processes):
                        if process is None or not process.is_alive():
                            self._start(i, process)
                    wait([each.sentinel for each in self._processes if each], _LOOK_EVERY)
            finally:
                self._end()

    def _start(self, i: int, old: SpawnProcess | None) -> None:
        if old is not None:
            _log.error("process %s ended with %s: another takes its place", old.pid, old.exitcode)
            multiprocess.mark_process_dead(old.pid)  # type: ignore[no-untyped-call]
            time.sleep(max(0.0, min(_PAUSE, self._started[i] + _PAUSE - time.monotonic())))
        made = multiprocessing.get_context("spawn").Process(
            target=self._target, args=(self._listener,), name=f"calibrant-{i}"
        )
        self._started[i] = time.monotonic()
        # What is ignored here is ignored there, until the process has handlers of its own: neither
        # a reload nor Ctrl-C, which reaches all processes of a terminal, ends it while it starts.
        with handled(signal.SIG_IGN, signal.SIGHUP, signal.SIGINT):
            made.start()
        self._processes[i] = made

    def _pass_on(self, sign: int) -> None:
        for each in self._processes:
            if each is not None and each.is_alive() and each.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each.pid, sign)

    def _end(self) -> None:
        self._listener.close()  # or who comes now would wait for an answer that nobody gives
        self._pass_on(signal.SIGTERM)
        until = time.monotonic() + self._patience + _MORE
        for each in self._processes:
            if each is None:
                continue
            each.join(max(0.0, until - time.monotonic()))
            if each.is_alive():
                _log.error("process %s did not end in time and is killed", each.pid)
                each.kill()
                each.join()


def end_with_parent(stop: Callable[[], None]) -> None:
    """Call `stop` when the process that started this one is gone, however it ended."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        stop()

    threading.Thread(target=watch, name="calibrant-parent", daemon=True).start()
