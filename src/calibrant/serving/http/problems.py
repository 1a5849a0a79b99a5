"""Error responses as `application/problem+json` (RFC 9457)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from calibrant.errors import CalibrantError, InputError, StoreUnavailable, StoreUnfit

PROBLEM_JSON = "application/problem+json"


class ProblemPages(Protocol):
    """Renders problems as HTML for paths of the console."""

    def has(self, path: str) -> bool:
        """Return whether a path belongs to the console."""

    async def problem_page(self, request: Request, problem: Problem) -> Response:
        """Render a problem as a page."""


_RETRY_SOON = {"Retry-After": "1"}
_MAX_ERRORS = 20  # Maximum number of errors reported per request

_log = logging.getLogger("calibrant.serving")


class Problem(Exception):
    """An error response: status, message, extra headers, and `where` and `message` of errors."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Mapping[str, str]] = (),
    ) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
        self.headers, self.errors = dict(headers or {}), list(errors)

    @classmethod
    def busy(cls, detail: str) -> Problem:
        """Return a 503 with `Retry-After`."""
        return cls(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers=_RETRY_SOON)


def problem_response(problem: Problem) -> Response:
    """Render a problem as JSON."""
    content: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": int(problem.status),
        "detail": problem.detail,
    }
    if problem.errors:
        content["errors"] = problem.errors
    return Response(to_json(content), problem.status, problem.headers, PROBLEM_JSON)


def validation_problem(error: ValidationError) -> Problem:
    """Return the problem of a body that is not JSON or does not match the schema."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    if details[0]["type"] == "json_invalid":
        reason = details[0]["msg"].removeprefix("Invalid JSON: ")
        return Problem(HTTPStatus.BAD_REQUEST, f"the body is not valid UTF-8 JSON: {reason}.")
    errors = [
        {"where": format_location(each["loc"]), "message": _message(each)}
        for each in details[:_MAX_ERRORS]
    ]
    first = errors[0]
    message = f"{first['where']}: {first['message']}" if first["where"] else first["message"]
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, _end_with_period(message), errors=errors)


def format_location(loc: Sequence[int | str]) -> str:
    """Format the location of a field in a body."""
    location = ""
    for step in loc:
        if isinstance(step, int):
            location += f"[{step}]"
        else:
            location += f".{step[:100]}" if location else step[:100]
    return location


def to_problem(error: Exception, request: str) -> Problem:
    """Convert an exception to a problem; log those that are not the client's fault."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, ClientDisconnect):  # no client is left to read this
        return Problem(HTTPStatus.BAD_REQUEST, "the body is incomplete.")
    if isinstance(error, StoreUnavailable | StoreUnfit):
        _log.warning("%s", error)
        return Problem.busy(
            "the database is unavailable, and no prediction is made without a record: try again."
        )
    if isinstance(error, InputError):
        return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
    _log.error("%s failed", request, exc_info=error)
    detail = "internal error: see the log of the service; the request was not answered."
    return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail)


def handle_problems(app: FastAPI) -> None:
    """Register handlers that return every exception as a problem."""
    app.add_exception_handler(HTTPException, _handle_http_error)
    app.add_exception_handler(RequestValidationError, _handle_invalid_request)
    for kind in (Problem, ClientDisconnect, CalibrantError, Exception):
        app.add_exception_handler(kind, _handle_error)


async def _handle_error(request: Request, error: Exception) -> Response:
    return await _respond(request, to_problem(error, f"{request.method} {request.scope['path']!r}"))


async def _handle_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = {
        404: f"{request.scope['path'][:200]!r} does not exist: see /docs for all routes.",
        405: f"{request.method} is not allowed here: see the Allow header or /docs.",
    }.get(error.status_code, str(error.detail))
    return await _respond(request, Problem(error.status_code, detail, headers=error.headers))


async def _handle_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    message = f"{format_location(first['loc'])}: {first['msg']}"
    return await _respond(
        request, Problem(HTTPStatus.UNPROCESSABLE_ENTITY, _end_with_period(message))
    )


async def _respond(request: Request, problem: Problem) -> Response:
    """Render a problem as JSON, or as a page inside the console."""
    console: ProblemPages | None = getattr(request.app.state, "console", None)
    if console is not None and console.has(request.scope["path"]):
        return await console.problem_page(request, problem)
    return problem_response(problem)


def _message(error: Mapping[str, Any]) -> str:
    """Return the message of a validation error."""
    if error["type"] == "extra_forbidden" and error["loc"][:1] == ("inputs",):
        return "unknown field: an input is a text, a row or logits, and a row's columns go into row"
    known = {
        "missing": "this field is required",
        "extra_forbidden": "unknown field",
        "too_short": "at least one is required",
        "string_pattern_mismatch": "control characters are not allowed",
    }
    message: str = known.get(error["type"], error["msg"])
    return message.removeprefix("Value error, ")


def _end_with_period(message: str) -> str:
    return message if message.endswith(".") else f"{message}."
