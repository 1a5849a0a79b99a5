"""What every request passes first: a look at its host, and a count when it is answered."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calibrant.client.address import is_loopback
from calibrant.serving.http.predict_endpoint import PATH, PredictEndpoint
from calibrant.serving.http.problems import Problem, problem_response
from calibrant.serving.service import Service

__all__ = ["Doorway"]

_HEADERS = [(b"x-content-type-options", b"nosniff")]
_NOT_KEPT = (b"cache-control", b"no-store")
"""Of every answer that does not say itself how long it may be kept."""

_ONCE = (b"authorization", b"content-encoding", b"content-type", b"idempotency-key", b"host")
"""Headers that say one thing: of two, one would be believed here and the other one elsewhere."""

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/\s]+)(:[0-9]*)?")


class Doorway:
    """Counts requests and refuses those that reach a local service under a foreign name.

    A service on loopback needs no key, so a page in a browser must not reach it: its requests come
    with the name of another host, which was made to point here.

    Parameters
    ----------
    app : what answers, but for predictions, which have a way of their own
    service : is told what was counted
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._metrics = app, service.metrics
        self._predict = PredictEndpoint(service)
        self._local = not service.settings.keys_needed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 500

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = message.get("headers", [])
                kept = any(name == b"cache-control" for name, _ in given)
                message["headers"] = [*given, *_HEADERS, *(() if kept else (_NOT_KEPT,))]
            await send(message)

        chosen = self._chosen(scope)
        try:
            await chosen(scope, receive, counted)
        finally:
            route = PATH if chosen is self._predict else _route(scope)
            self._metrics.answered(route, status, time.perf_counter() - begin)

    def _chosen(self, scope: Scope) -> ASGIApp:
        names = [name for name, _ in scope["headers"]]
        if len(set(names)) < len(names) and (twice := _twice(names)):
            return problem_response(
                Problem(400, f"the header {twice} comes more than once: send it once.")
            )
        if self._local and not _is_local(_host(scope)):
            return problem_response(
                Problem(421, "this service answers to localhost only: use that name.")
            )
        if scope["path"] == PATH and scope["method"] == "POST":
            return self._predict
        if self._local and _is_of_a_page(scope):
            return problem_response(
                Problem(403, "pages of other addresses may not use this service: send no Origin.")
            )
        return self._app


def _route(scope: Scope) -> str:
    """Return the route that answered, without what stands for an id."""
    route: Any = scope.get("route")
    return getattr(route, "path_format", "unknown")


def _twice(names: Sequence[bytes]) -> str | None:
    return next((name.decode() for name in _ONCE if names.count(name) > 1), None)


def _host(scope: Scope) -> bytes:
    return next((value for name, value in scope["headers"] if name == b"host"), b"localhost")


def _is_of_a_page(scope: Scope) -> bool:
    """Tell whether a page in a browser asks that came from elsewhere.

    A browser sends some requests without asking first, such as the one to load the bundle again.
    Predictions need no such look: it asks before it sends JSON, and is told that it may not.
    """
    origin = next((value for name, value in scope["headers"] if name == b"origin"), None)
    return origin is not None and not _is_local(origin.rpartition(b"//")[2])


@lru_cache(maxsize=64)
def _is_local(given: bytes) -> bool:
    found = _HOST.fullmatch(given.decode("latin-1"))
    return found is not None and is_loopback(found[1])
