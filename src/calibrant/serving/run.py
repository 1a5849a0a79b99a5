"""Run the service in one process or in several that share a port."""

from __future__ import annotations

import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any

from prometheus_client import multiprocess

from calibrant.errors import InputError
from calibrant.serving.app import SETTINGS, app_from_environment, make_app
from calibrant.serving.http.server import BACKLOG, Server
from calibrant.serving.service import Service
from calibrant.serving.settings import Settings


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


_LOGGERS = ("calibrant.serving", "uvicorn")
_EVERY = 10.0  # Seconds in which a message is logged once
_MAX_TRACKED = 200
"""Maximum number of distinct messages tracked; beyond it, messages are grouped by format."""


class RepeatFilter(logging.Filter):
    """Logging filter that passes a message once in ten seconds and counts the others.

    An unavailable database fails every request, and one line is enough. A record that passes has
    `left_out`, the number of suppressed records since the last one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._counts: dict[tuple[int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write a record."""
        now = time.monotonic()
        with self._lock:
            kind = record.levelno, record.getMessage()
            if kind not in self._counts and len(self._counts) >= _MAX_TRACKED:
                self._forget(now)
                if len(self._counts) >= _MAX_TRACKED:
                    kind = record.levelno, str(record.msg)
            since, count = self._counts.get(kind, (float("-inf"), 0))
            if now - since < _EVERY:
                self._counts[kind] = since, count + 1
                return False
            self._counts[kind] = now, 0
        record.left_out = count
        return True

    def _forget(self, now: float) -> None:
        """Drop old messages without suppressed repeats."""
        self._counts = {
            kind: (since, count)
            for kind, (since, count) in self._counts.items()
            if now - since < (_EVERY if count == 0 else 10 * _EVERY)
        }


class _LineFormatter(logging.Formatter):
    """Formats a record as a line: UTC time, level, process, message."""

    converter = time.gmtime  # type: ignore[assignment]
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(process)d %(message)s")
        self.datefmt = None
        self.default_time_format = "%Y-%m-%dT%H:%M:%S"

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        left_out = getattr(record, "left_out", 0)
        return super().formatMessage(record) + (f" ({left_out} more like it)" if left_out else "")


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Write the logs of the service and uvicorn to stderr inside the block."""
    handler = logging.StreamHandler()
    handler.setFormatter(_LineFormatter())
    handler.addFilter(RepeatFilter())
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


OnStart = Callable[[Service, str], None]
"""Called with the prepared service and its URL before the first request."""


def serve(settings: Settings, *, on_start: OnStart) -> None:
    """Serve until SIGTERM or SIGINT; requests in progress are answered first."""
    with log_to_stderr(), _open_listener(settings.host, settings.port) as listener:
        settings = replace(settings, port=listener.getsockname()[1])
        (_serve_in_process if settings.workers == 1 else _serve_with_workers)(
            settings, listener, on_start
        )


def _serve_in_process(settings: Settings, listener: socket.socket, on_start: OnStart) -> None:
    service = Service(settings)
    service.prepare()
    server = Server(make_app(service))
    with _stop_on_signals(server.stop):
        on_start(service, _url(settings.host, settings.port))
        _run(server, listener)


def _serve_with_workers(settings: Settings, listener: socket.socket, on_start: OnStart) -> None:
    service = _check_service(settings)
    timeout = settings.grace + settings.drain
    workers = Workers(settings.workers, _run_worker, listener, stop_timeout=timeout)
    with _stop_on_signals(workers.stop), _worker_environment(settings):
        on_start(service, _url(settings.host, settings.port))
        service.store.close()
        del service  # each worker loads the model, this process does not need it
        gc.collect()
        workers.run()


def _check_service(settings: Settings) -> Service:
    """Prepare a service to report errors early; on the CPU, so that no GPU memory is held."""
    service = Service(replace(settings, device="cpu"))
    served = service.prepare()
    if served.bundle.scorer is not None and "torch" in served.bundle.scorer.packages:
        from calibrant.models.saved_parts import device_named

        device_named(settings.device)
    return service


@contextmanager
def _worker_environment(settings: Settings) -> Iterator[None]:
    """Set the environment of the workers: the settings, and a folder for shared metrics."""
    with tempfile.TemporaryDirectory(prefix="calibrant-metrics-") as folder:
        os.environ |= {"PROMETHEUS_MULTIPROC_DIR": folder, SETTINGS: settings.to_json()}
        yield


def _run_worker(listener: socket.socket) -> None:
    """Entry point of a worker process."""
    with log_to_stderr():
        server = Server(app_from_environment())
        stop_with_parent(server.stop)
        with _stop_on_signals(server.stop):
            _run(server, listener)


def _run(server: Server, listener: socket.socket) -> None:
    """Run a server, with everything loaded so far excluded from garbage collection.

    Requests then do not wait for it, and the process exits a second sooner.
    """
    gc.collect()
    gc.freeze()
    server.run([listener])


@contextmanager
def _stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on SIGINT and SIGTERM, so that the process exits normally.

    uvicorn replaces the handlers while it runs and raises the signals again after draining.
    """
    with handle_signals(lambda *_: stop(), signal.SIGINT, signal.SIGTERM):
        yield


def _open_listener(host: str, port: int) -> socket.socket:
    """Bind the port; raise `InputError` if the address is not available."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InputError(
            f"--host {host!r} is not an address of this machine ({error}): use 127.0.0.1, or "
            "0.0.0.0 for all interfaces."
        ) from None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)  # early connections wait until the server runs
    except OSError as error:
        listener.close()
        raise InputError(
            f"cannot listen on {_url(host, port)}: {error.strerror or error}; choose "
            "another --port (0 picks a free one) or --host."
        ) from None
    listener.set_inheritable(True)
    return listener


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
