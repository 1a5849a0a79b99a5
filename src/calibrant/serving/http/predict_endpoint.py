"""`POST /v1/predict` without a framework in between: it is the one request that comes often.

Routing, dependencies and response classes cost about 100 microseconds of a core a request, as much
as the model and the database together.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from starlette.types import Receive, Scope, Send

from calibrant.client.messages import PredictBody
from calibrant.serving.http.bodies import idempotency_key, read_body, understood
from calibrant.serving.http.problems import problem_of, problem_response
from calibrant.serving.service import Service

__all__ = ["PATH", "PredictEndpoint", "predicted"]

PATH = "/v1/predict"

_JSON = (b"content-type", b"application/json")


async def predicted(service: Service, headers: Mapping[str, str], receive: Receive) -> bytes:
    """Return the answer to a request, as JSON."""
    since = time.perf_counter()
    key = await service.access.admit(headers.get("authorization"), "predict")
    retry = idempotency_key(headers)
    body = await read_body(headers, receive, service.settings.max_body)
    asked = understood(body, PredictBody)
    return await service.predict(asked, body, key=key, retry=retry, since=since)


class PredictEndpoint:
    """Answers requests for predictions as an ASGI application.

    Parameters
    ----------
    service : decides
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        try:
            answer = await predicted(self._service, headers, receive)
        except Exception as error:
            response = problem_response(problem_of(error, f"POST {PATH}"))
            await response(scope, receive, send)
            return
        length = (b"content-length", str(len(answer)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [_JSON, length]})
        await send({"type": "http.response.body", "body": answer})
