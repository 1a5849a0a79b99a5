"""What every route needs of a request: the service, and whether the request may come in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request

from calibrant.client.messages import ProblemAnswer
from calibrant.serving.http.problems import PROBLEM_JSON
from calibrant.serving.service import Service
from calibrant.store import Key

__all__ = ["body_of", "needs", "problems", "service_of"]

_MEANINGS = {
    400: "The body is not JSON, or a header cannot be read.",
    401: "The key is missing, wrong or revoked.",
    403: "The key has another role.",
    404: "There is no such thing.",
    409: "The request contradicts what is there.",
    413: "The body or the batch is too large.",
    415: "The body has another type than JSON.",
    422: "The content breaks a rule.",
    429: "The key's rate is used up; see Retry-After.",
    503: "Too much to do, or the database is away; see Retry-After.",
}


_RETRY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Of your choice, new for each request: sent again, it is recorded once.",
    "schema": {"type": "string", "pattern": r"^[\x21-\x7e]{1,128}$"},
    "example": "order-17",
}


def service_of(request: Request) -> Service:
    """Return the service that a request came to."""
    found: Service = request.app.state.service
    return found


def needs(role: str | None) -> Callable[[Request], Awaitable[Key | None]]:
    """Return what lets a request in: its key must have a role; None for any."""

    async def admitted(request: Request) -> Key | None:
        header = request.headers.get("authorization")
        return await service_of(request).access.admit(header, role)

    return admitted


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the problems of a route as OpenAPI describes them."""
    schema = {"$ref": f"#/components/schemas/{ProblemAnswer.__name__}"}
    content = {PROBLEM_JSON: {"schema": schema}}
    return {each: {"description": _MEANINGS[each], "content": content} for each in statuses}


def body_of(message: type, *, retried: bool = False) -> dict[str, Any]:
    """Return a body as OpenAPI describes it; the route itself reads the bytes."""
    schema = {"$ref": f"#/components/schemas/{message.__name__}"}
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {"requestBody": body, **({"parameters": [_RETRY_KEY]} if retried else {})}
