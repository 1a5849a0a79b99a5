"""Starting the service: what can go wrong is told first, then uvicorn runs it."""

from __future__ import annotations

import gc
import os
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from calibrant.errors import InputError
from calibrant.serving.app import SETTINGS, app_of_environment, make_app
from calibrant.serving.http.logs import logged
from calibrant.serving.http.server import BACKLOG, Server
from calibrant.serving.http.signals import handled
from calibrant.serving.http.workers import Workers, end_with_parent
from calibrant.serving.service import Service
from calibrant.serving.settings import Settings

__all__ = ["Started", "serve"]

Started = Callable[[Service, str], None]
"""Is told the prepared service and its address, before requests come in."""


def serve(settings: Settings, *, started: Started) -> None:
    """Serve until the process is told to stop; requests under way are answered first."""
    with logged(), _listening(settings.host, settings.port) as listener:
        settings = replace(settings, port=listener.getsockname()[1])
        (_serve_alone if settings.workers == 1 else _serve_together)(settings, listener, started)


def _serve_alone(settings: Settings, listener: socket.socket, started: Started) -> None:
    service = Service(settings)
    service.prepare()
    server = Server(make_app(service))
    with _told_to_stop(server.stop):
        started(service, _address(settings.host, settings.port))
        _run(server, listener)


def _serve_together(settings: Settings, listener: socket.socket, started: Started) -> None:
    service = _checked(settings)
    patience = settings.grace + settings.drain
    workers = Workers(settings.workers, _work, listener, patience=patience)
    with _told_to_stop(workers.stop), _shared(settings):
        started(service, _address(settings.host, settings.port))
        service.store.close()
        del service  # each process has the model, this one needs none
        gc.collect()
        workers.run()


def _checked(settings: Settings) -> Service:
    """Prepare a service to see what is wrong with it; no GPU is touched, for it would be kept."""
    service = Service(replace(settings, device="cpu"))
    served = service.prepare()
    if served.bundle.scorer is not None:
        from calibrant.models.saved_parts import device_named

        device_named(settings.device)
    return service


@contextmanager
def _shared(settings: Settings) -> Iterator[None]:
    """Tell processes to come the settings, and where each writes the figures that are added up."""
    with tempfile.TemporaryDirectory(prefix="calibrant-metrics-") as folder:
        os.environ |= {"PROMETHEUS_MULTIPROC_DIR": folder, SETTINGS: settings.to_json()}
        yield


def _work(listener: socket.socket) -> None:
    """Serve as one of several processes."""
    with logged():
        server = Server(app_of_environment())
        end_with_parent(server.stop)
        with _told_to_stop(server.stop):
            _run(server, listener)


def _run(server: Server, listener: socket.socket) -> None:
    """Run a server; what was loaded before is left out of the search for garbage.

    So requests do not wait for it, and the process ends a second sooner.
    """
    gc.collect()
    gc.freeze()
    server.run([listener])


@contextmanager
def _told_to_stop(stop: Callable[[], None]) -> Iterator[None]:
    """Have SIGINT and SIGTERM call `stop`, so that the process ends normally.

    uvicorn takes them over while it runs, and raises them again when it has drained.
    """
    with handled(lambda *_: stop(), signal.SIGINT, signal.SIGTERM):
        yield


def _listening(host: str, port: int) -> socket.socket:
    """Take the port, so that an address that cannot be had is told in one sentence."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InputError(
            f"--host {host!r} is not an address of this machine ({error}): use 127.0.0.1, or "
            "0.0.0.0 for all that it has."
        ) from None
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)  # who comes before the server runs waits a moment
    except OSError as error:
        listener.close()
        raise InputError(
            f"{_address(host, port)} cannot be served on: {error.strerror or error}; choose "
            "another --port (0 takes a free one) or --host."
        ) from None
    listener.set_inheritable(True)
    return listener


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
