"""Connections of clients that may mean harm: slow, endless, half closed, or hardly HTTP.

uvicorn waits for a request without end, keeps as many headers and pipelined requests as come, takes
what follows a body for headers, and loses the body of a request that offers to change the protocol,
as some clients always do. Here each of these has a limit, or an answer.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from calibrant.serving.http.problems import PROBLEM_JSON, Problem, problem_response

__all__ = ["Connection"]

_PATIENCE = 30.0
"""Seconds for a request to come in, and for a client to take some of its answer."""

_SLOWEST = 16_384
"""Bytes of a body that give it another second."""

_LOOK_EVERY = 5.0
_LONGEST_HEAD = 65_536
"""Bytes of a request that are not its body."""

_OFFERS = (b"upgrade", b"connection", b"http2-settings")

_NO_HTTP = "this is not HTTP as the service reads it: send a request of HTTP/1.1."
_NO_HOST = "a request of HTTP/1.1 has exactly one Host header: send that."
_LONG = f"the address and the headers are longer than {_LONGEST_HEAD:,} bytes: send less of them."
_SLOW = "the request did not come in within its time: send it again, faster."
_MANY = "too many connections are open: try again."


class Connection(HttpToolsProtocol):
    """Reads requests from one connection and sends their answers."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._since: float | None = None  # since when there is something to wait for
        self._came = self._body = 0  # bytes of it, and of its body
        self._in_body = self._deaf = False
        self._unsent, self._unsent_since = 0, 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.flow = _Flow(transport, self.pipeline)
        self._since = self.loop.time()
        self._timer = self.loop.call_later(_LOOK_EVERY, self._look)
        if len(self.connections) > most_connections():
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, _MANY)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Still answer a client that only says that it has nothing more to send."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete or self._since is not None:
            return False
        cycle.keep_alive = False
        return True

    def data_received(self, data: bytes) -> None:
        """Read what came."""
        if self._deaf:
            return
        self._unset_keepalive_if_required()
        self._came += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._refuse(HTTPStatus.BAD_REQUEST, _NO_HTTP)
            return
        if self._since is None and (self.cycle is None or self.cycle.response_complete):
            self._since = self.loop.time()  # line ends between requests, say
        if self._came - 2 * self._body > _LONGEST_HEAD:  # what frames a body is shorter than it
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _LONG)

    def on_message_begin(self) -> None:
        """Begin with a request."""
        super().on_message_begin()
        self._since, self._came, self._body = self.loop.time(), 0, 0

    def on_headers_complete(self) -> None:
        """Have a request answered; its body may still be on its way."""
        if self._deaf or self.parser.should_upgrade():  # `_feed` begins again
            return
        hosts = [name for name, _ in self.headers].count(b"host")
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() == "1.1"):
            self._refuse(HTTPStatus.BAD_REQUEST, _NO_HOST)
            return
        super().on_headers_complete()
        self._in_body = True
        self.headers = []  # what follows the body is no header: nobody has looked at it

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        if self._in_body:
            self._body += len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that all of a request is there."""
        if self._in_body:
            super().on_message_complete()
            self._since, self._came, self._body, self._in_body = None, 0, 0, False

    def on_response_complete(self) -> None:
        """Go on with the next request, or hang up where there was something wrong after it."""
        super().on_response_complete()
        if self._deaf and self.timeout_keep_alive_task is not None:  # no other waits
            self.transport.close()

    def _feed(self, data: bytes) -> None:
        """Have data parsed; an offer to change the protocol is passed over."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            if self.parser.get_method() == b"CONNECT":
                raise httptools.HttpParserError from None
            head = self._head_without_offer()
            self.parser = httptools.HttpRequestParser(self)
            self._feed(head + data[offer.args[0] :])

    def _head_without_offer(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
        lines += [b"%s: %s" % each for each in self.headers if each[0] not in _OFFERS]
        said = b",".join(value for name, value in self.headers if name == b"connection").lower()
        lines += [b"connection: close"] if b"close" in said else []
        return b"\r\n".join([*lines, b"", b""])

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Tell what is wrong and hang up; requests that came before are still answered."""
        if self._deaf:
            return
        self._deaf, cycle = True, self.cycle
        if self.pipeline and self._in_body:
            self.pipeline.popleft()  # this one is not answered, but those before it are
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

    def _look(self) -> None:
        """Hang up where a request, or the taking of an answer, lasts too long."""
        now = self.loop.time()
        self._timer = self.loop.call_later(_LOOK_EVERY, self._look)
        unsent = self.transport.get_write_buffer_size()
        if unsent == 0 or unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        elif now - self._unsent_since > _PATIENCE:
            self.transport.abort()
            return
        answered = self.cycle is not None and self.cycle.response_complete
        more = 0.0 if answered else self._body / _SLOWEST
        if self._since is not None and now - self._since > _PATIENCE + more:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, _SLOW)


class _Flow(FlowControl):
    """Reads nothing more while requests wait that came before."""

    def __init__(self, transport: asyncio.Transport, pipeline: Any) -> None:
        super().__init__(transport)
        self._pipeline = pipeline

    def resume_reading(self) -> None:
        if not self._pipeline:
            super().resume_reading()


def most_connections() -> int:
    """Return how many connections may be open: some files are left for the database."""
    try:
        import resource
    except ImportError:  # Windows
        return 4_096
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 4 // 5
