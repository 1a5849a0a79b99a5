"""ASGI endpoint of `POST /v1/predict`, bypassing FastAPI for speed.

Routing, dependencies and response classes cost about 100 microseconds per request, as much as the
model and the database together. `HostGuard` calls this endpoint directly.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from starlette.types import Receive, Scope, Send

from calibrant.client.messages import PredictBody
from calibrant.serving.http.bodies import parse_body, read_body, read_idempotency_key
from calibrant.serving.http.problems import problem_response, to_problem
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
    """ASGI application that answers `POST /v1/predict`."""

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
