"""ASGI middleware: Host and Origin checks, request metrics, and the fast path for predictions."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calibrant.client.address import is_loopback
from calibrant.client.messages import PredictBody
from calibrant.serving.http.bodies import parse_body, read_body, read_idempotency_key
from calibrant.serving.http.problems import Problem, problem_response, to_problem
from calibrant.serving.service import Service

PATH = "/v1/predict"

_JSON = (b"content-type", b"application/json")


async def answer_predict(service: Service, headers: Mapping[str, str], receive: Receive) -> bytes:
    """Authorise, parse and answer a request; return JSON."""
    since = time.perf_counter()
    key = await service.access.admit(headers.get("authorization"), "predict")
    retry = read_idempotency_key(headers)
    body = await read_body(headers, receive, service.settings.max_body)
    message = parse_body(body, PredictBody)
    return await service.predict(message, body, key=key, retry=retry, since=since)


class PredictEndpoint:
    """ASGI application that answers `POST /v1/predict`, bypassing FastAPI for speed.

    Routing, dependencies and response classes cost about 100 microseconds per request, as much as
    the model and the database together.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        try:
            answer = await answer_predict(self._service, headers, receive)
        except Exception as error:
            response = problem_response(to_problem(error, f"POST {PATH}"))
            await response(scope, receive, send)
            return
        length = (b"content-length", str(len(answer)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [_JSON, length]})
        await send({"type": "http.response.body", "body": answer})


_HEADERS = [(b"x-content-type-options", b"nosniff")]
_NO_STORE = (b"cache-control", b"no-store")  # Default for responses without a Cache-Control header

_UNIQUE_HEADERS = (
    b"authorization",
    b"content-encoding",
    b"content-type",
    b"idempotency-key",
    b"host",
)
"""Headers that must not be repeated: a proxy might read another of the values than we do."""

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/\s]+)(:[0-9]*)?")


class HostGuard:
    """Checks Host and Origin, counts requests, and sends predictions to `PredictEndpoint`.

    A service on loopback needs no key, so pages in a browser must not reach it: with DNS rebinding
    their requests carry the name of another host. All other requests go to `app`.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._metrics = app, service.metrics
        self._predict = PredictEndpoint(service)
        self._local = not service.settings.keys_needed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, dispatch and count a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 500

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = message.get("headers", [])
                cached = any(name == b"cache-control" for name, _ in headers)
                message["headers"] = [*headers, *_HEADERS, *(() if cached else (_NO_STORE,))]
            await send(message)

        handler = self._choose_handler(scope)
        try:
            await handler(scope, receive, send_and_note)
        finally:
            route = PATH if handler is self._predict else _route_template(scope)
            self._metrics.count_request(route, status, time.perf_counter() - begin)

    def _choose_handler(self, scope: Scope) -> ASGIApp:
        names = [name for name, _ in scope["headers"]]
        if len(set(names)) < len(names) and (name := _repeated_header(names)):
            return problem_response(Problem(400, f"duplicate header {name}: send it once."))
        if self._local and not _is_local(_host(scope)):
            return problem_response(
                Problem(421, "this service only accepts the host name localhost: use it.")
            )
        if scope["path"] == PATH and scope["method"] == "POST":
            return self._predict
        if self._local and _is_cross_origin(scope):
            return problem_response(
                Problem(403, "cross-origin requests are not allowed: send no Origin header.")
            )
        return self._app


def _route_template(scope: Scope) -> str:
    """Return the template of the matched route."""
    route: Any = scope.get("route")
    return getattr(route, "path_format", "unknown")


def _repeated_header(names: Sequence[bytes]) -> str | None:
    return next((name.decode() for name in _UNIQUE_HEADERS if names.count(name) > 1), None)


def _host(scope: Scope) -> bytes:
    return next((value for name, value in scope["headers"] if name == b"host"), b"localhost")


def _is_cross_origin(scope: Scope) -> bool:
    """Return whether the request is cross-origin, sent by a page of another site.

    Browsers send simple requests, such as a reload of the bundle, without a preflight. Predictions
    need no check: JSON requires a preflight, which is refused.
    """
    origin = next((value for name, value in scope["headers"] if name == b"origin"), None)
    return origin is not None and not _is_local(origin.rpartition(b"//")[2])


@lru_cache(maxsize=64)
def _is_local(host: bytes) -> bool:
    match = _HOST.fullmatch(host.decode("latin-1"))
    return match is not None and is_loopback(match[1])
