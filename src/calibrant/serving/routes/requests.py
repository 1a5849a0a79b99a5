"""Helpers of the routes: dependencies, and OpenAPI descriptions of bodies and problems."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request

from calibrant.client.messages import ProblemAnswer
from calibrant.serving.http.problems import PROBLEM_JSON
from calibrant.serving.service import Service
from calibrant.store import Key

_MEANINGS = {
    400: "The body is not JSON, or a header cannot be read.",
    401: "The key is missing, wrong or revoked.",
    403: "The key has the wrong role.",
    404: "Not found.",
    409: "The request conflicts with the current state.",
    413: "The body or the batch is too large.",
    415: "The content type is not JSON.",
    422: "The content is invalid.",
    429: "The key's rate limit is exceeded; see Retry-After.",
    503: "The service is overloaded or the database is unavailable; see Retry-After.",
}

_RETRY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A unique value per request; a request repeated with it is recorded once.",
    "schema": {"type": "string", "pattern": r"^[\x21-\x7e]{1,128}$"},
    "example": "order-17",
}


def service_of(request: Request) -> Service:
    """Return the service of the application."""
    service: Service = request.app.state.service
    return service


def require_role(role: str | None) -> Callable[[Request], Awaitable[Key | None]]:
    """Return a dependency that requires a key with `role`, or any key if None."""

    async def admit(request: Request) -> Key | None:
        header = request.headers.get("authorization")
        return await service_of(request).access.admit(header, role)

    return admit


def describe_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses of a route's problems."""
    schema = {"$ref": f"#/components/schemas/{ProblemAnswer.__name__}"}
    content = {PROBLEM_JSON: {"schema": schema}}
    return {status: {"description": _MEANINGS[status], "content": content} for status in statuses}


def describe_body(message: type, *, retried: bool = False) -> dict[str, Any]:
    """Return the OpenAPI description of a body that the route parses itself."""
    schema = {"$ref": f"#/components/schemas/{message.__name__}"}
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {"requestBody": body, **({"parameters": [_RETRY_KEY]} if retried else {})}
