"""Start the service: check settings, bind the port, run one process or several."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from calibrant.errors import InputError
from calibrant.serving.app import SETTINGS, app_from_environment, make_app
from calibrant.serving.http.server import BACKLOG, Server
from calibrant.serving.http.workers import Workers, handle_signals, stop_with_parent
from calibrant.serving.service import Service
from calibrant.serving.settings import Settings

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
