"""uvicorn server with a grace period and a deadline for shutdown."""

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
"""Maximum number of connections waiting to be accepted."""

_CHECK_EVERY = 0.1


class Server(uvicorn.Server):
    """Runs the application of a service (`app.state.service`) until it is stopped.

    On SIGTERM it serves for `grace` seconds more while `/readyz` returns 503, so that a load
    balancer stops sending. Then it accepts no more connections and has `drain` seconds to finish
    the requests in progress. Ctrl-C skips the grace period.
    """

    def __init__(self, app: FastAPI) -> None:
        self._service: Service = app.state.service
        self._skip_grace = False
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
        """Stop the server without a grace period; may be called by a signal handler or thread."""
        self._skip_grace = self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        self._skip_grace = self._skip_grace or sig == signal.SIGINT
        super().handle_exit(sig, frame)

    async def main_loop(self) -> None:
        """Serve until stopped, then until the grace period ends."""
        await super().main_loop()
        settings = self._service.settings
        self._service.readiness.leaving = True
        until = time.monotonic() + settings.grace
        while time.monotonic() < until and not self._skip_grace:
            await asyncio.sleep(_CHECK_EVERY)
            await self.on_tick(0)  # updates the Date header
        self._service.deadline = time.monotonic() + settings.drain
