"""uvicorn as the service runs it: it says that it will stop, stops, and is done by a fixed time."""

from __future__ import annotations

import asyncio
import signal
import time
from types import FrameType

import uvicorn
from fastapi import FastAPI

from calibrant.serving.http.connections import Connection
from calibrant.serving.service import Service

__all__ = ["BACKLOG", "Server"]

BACKLOG = 2048
"""Connections that may wait to be taken."""

_LOOK_EVERY = 0.1


class Server(uvicorn.Server):
    """Runs the application of a service until it is told to stop.

    Then, for `grace` seconds, it answers as before, but `/readyz` says that it is stopping, so that
    a load balancer sends no more. After that it takes no more connections, and has `drain` seconds
    for what is under way: those of uvicorn, and what is left of them for the service. Ctrl-C is a
    person who waits: it ends the grace.

    Parameters
    ----------
    app : the application, whose `state.service` is the service
    """

    def __init__(self, app: FastAPI) -> None:
        self._service: Service = app.state.service
        self._hurry = False
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                http=Connection,
                ws="none",
                timeout_graceful_shutdown=int(self._service.settings.drain) or 1,
                backlog=BACKLOG,
                lifespan="on",
            )
        )

    def stop(self) -> None:
        """Have the server stop without a grace; may be called by a signal or a thread."""
        self._hurry = self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take note of a signal."""
        self._hurry = self._hurry or sig == signal.SIGINT
        super().handle_exit(sig, frame)

    async def main_loop(self) -> None:
        """Serve until told to stop, and then until the grace is over."""
        await super().main_loop()
        settings = self._service.settings
        self._service.readiness.leaving = True
        until = time.monotonic() + settings.grace
        while time.monotonic() < until and not self._hurry:
            await asyncio.sleep(_LOOK_EVERY)
            await self.on_tick(0)  # the header Date
        self._service.end_by = time.monotonic() + settings.drain
