"""uvicorn server with a grace period and a deadline for shutdown."""

from __future__ import annotations

import asyncio
import signal
import time
from http import HTTPStatus
from types import FrameType
from typing import Any

import httptools
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from calibrant.serving.http.problems import PROBLEM_JSON, Problem, problem_response
from calibrant.serving.service import Service

_TIMEOUT = 30.0  # Seconds for a request to arrive, and for a client to read some of its response
_MIN_RATE = 16_384  # Bytes per second: every such amount of body extends the timeout by a second
_CONNECTIONS_CHECK_EVERY = 5.0
_LONGEST_HEAD = 65_536  # Maximum bytes of a request outside its body
_UPGRADE_HEADERS = (b"upgrade", b"connection", b"http2-settings")
_INVALID_HTTP = "the request is not valid HTTP: send HTTP/1.1."
_INVALID_HOST = "an HTTP/1.1 request needs exactly one Host header: send one."
_HEAD_TOO_LONG = f"the URL and headers exceed {_LONGEST_HEAD:,} bytes: send fewer or shorter ones."
_TOO_SLOW = "the request did not arrive in time: send it again, faster."
_TOO_MANY = "too many open connections: try again."


class Connection(HttpToolsProtocol):
    """One client connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._since: float | None = None  # start of the current wait for data
        self._received = self._body = 0  # bytes received since then, and bytes of the body
        self._in_body = self._refused = False
        self._unsent, self._unsent_since = 0, 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request."""
        super().connection_made(transport)
        self.flow = _Flow(transport, self.pipeline)
        self._since = self.loop.time()
        self._timer = self.loop.call_later(_CONNECTIONS_CHECK_EVERY, self._check_timeouts)
        if len(self.connections) > max_connections():
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, _TOO_MANY)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Still answer a client that has closed only its sending side."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete or self._since is not None:
            return False
        cycle.keep_alive = False
        return True

    def data_received(self, data: bytes) -> None:
        """Parse received data."""
        if self._refused:
            return
        self._unset_keepalive_if_required()
        self._received += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._refuse(HTTPStatus.BAD_REQUEST, _INVALID_HTTP)
            return
        if self._since is None and (self.cycle is None or self.cycle.response_complete):
            self._since = self.loop.time()  # such as line ends between requests
        if (
            self._received - 2 * self._body > _LONGEST_HEAD
        ):  # chunk framing is shorter than the body
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _HEAD_TOO_LONG)

    def on_message_begin(self) -> None:
        """Start reading a request."""
        super().on_message_begin()
        self._since, self._received, self._body = self.loop.time(), 0, 0

    def on_headers_complete(self) -> None:
        """Dispatch a request; its body may still be arriving."""
        if self._refused or self.parser.should_upgrade():  # `_feed` parses it again
            return
        hosts = [name for name, _ in self.headers].count(b"host")
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() == "1.1"):
            self._refuse(HTTPStatus.BAD_REQUEST, _INVALID_HOST)
            return
        super().on_headers_complete()
        self._in_body = True
        self.headers = []  # trailers are not checked, so they are not headers

    def on_body(self, body: bytes) -> None:
        """Append a part of the body."""
        if self._in_body:
            self._body += len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Mark the request as complete."""
        if self._in_body:
            super().on_message_complete()
            self._since, self._received, self._body, self._in_body = None, 0, 0, False

    def on_response_complete(self) -> None:
        """Continue with the next request, or close if the data after it was invalid."""
        super().on_response_complete()
        if self._refused and self.timeout_keep_alive_task is not None:  # no pipelined request waits
            self.transport.close()

    def _feed(self, data: bytes) -> None:
        """Parse data; ignore an offer to upgrade the protocol."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            if self.parser.get_method() == b"CONNECT":
                raise httptools.HttpParserError from None
            head = self._head_without_upgrade()
            self.parser = httptools.HttpRequestParser(self)
            self._feed(head + data[offer.args[0] :])

    def _head_without_upgrade(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        lines += [b"%s: %s" % each for each in self.headers if each[0] not in _UPGRADE_HEADERS]
        options = b",".join(value for name, value in self.headers if name == b"connection").lower()
        lines += [b"connection: close"] if b"close" in options else []
        return b"\r\n".join([*lines, b"", b""])

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Send a problem and close; earlier requests are still answered."""
        if self._refused:
            return
        self._refused, cycle = True, self.cycle
        if self.pipeline and self._in_body:
            self.pipeline.popleft()  # only the requests before it are answered
            return
        if cycle is not None and not cycle.response_complete and not self._in_body:
            return
        if cycle is None or not cycle.response_started or cycle.response_complete:
            body = bytes(problem_response(Problem(status, detail)).body)
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: {PROBLEM_JSON}\r\n"
            if status == HTTPStatus.SERVICE_UNAVAILABLE:
                head += "retry-after: 1\r\n"
            head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(head.encode() + body)
        self.transport.close()

    def _check_timeouts(self) -> None:
        """Close if a request, or reading a response, takes too long."""
        now = self.loop.time()
        self._timer = self.loop.call_later(_CONNECTIONS_CHECK_EVERY, self._check_timeouts)
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        elif now - self._unsent_since > _TIMEOUT:
            self.transport.abort()
            return
        answered = self.cycle is not None and self.cycle.response_complete
        more = 0.0 if answered else self._body / _MIN_RATE
        if self._since is not None and now - self._since > _TIMEOUT + more:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, _TOO_SLOW)


class _Flow(FlowControl):
    """Pauses reading while pipelined requests wait."""

    def __init__(self, transport: asyncio.Transport, pipeline: Any) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        if not self._pipeline:
            super().resume_reading()


def max_connections() -> int:
    """Return the maximum number of connections; the rest of the file limit is for the database."""
    try:
        import resource
    except ImportError:  # Windows
        return 4_096
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 4 // 5


BACKLOG = 2048  # Maximum number of connections waiting to be accepted
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
