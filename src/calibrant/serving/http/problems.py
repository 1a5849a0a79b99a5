"""Answers for what went wrong: one sentence as `application/problem+json` (RFC 9457)."""

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

__all__ = [
    "PROBLEM_JSON",
    "Console",
    "Problem",
    "handle_problems",
    "of_validation",
    "problem_of",
    "problem_response",
]

PROBLEM_JSON = "application/problem+json"


class Console(Protocol):
    """What shows problems as pages."""

    def has(self, path: str) -> bool:
        """Tell whether an address is one of its own."""

    async def problem_page(self, request: Request, problem: Problem) -> Response:
        """Return the page of a problem."""


_AGAIN = {"Retry-After": "1"}
_SHOWN = 20
"""Faults of one request that are told; a body may have thousands."""

_log = logging.getLogger("calibrant.serving")


class Problem(Exception):
    """A request that cannot be answered, as the client is told it.

    Parameters
    ----------
    status : the HTTP status
    detail : one sentence with the remedy
    headers : further headers of the answer, such as `Retry-After`
    errors : where in the body faults are, each with `where` and `message`
    """

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
        """Return the problem of a service that cannot answer now, but may in a second."""
        return cls(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers=_AGAIN)


def problem_response(problem: Problem) -> Response:
    """Return the answer that tells a problem."""
    content: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": int(problem.status),
        "detail": problem.detail,
    }
    if problem.errors:
        content["errors"] = problem.errors
    return Response(to_json(content), problem.status, problem.headers, PROBLEM_JSON)


def of_validation(error: ValidationError) -> Problem:
    """Return the problem of a body that is no JSON, or breaks the schema."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    if found[0]["type"] == "json_invalid":
        reason = found[0]["msg"].removeprefix("Invalid JSON: ")
        return Problem(HTTPStatus.BAD_REQUEST, f"the body is not JSON in UTF-8: {reason}.")
    errors = [{"where": where(each["loc"]), "message": _said(each)} for each in found[:_SHOWN]]
    first = errors[0]
    said = f"{first['where']}: {first['message']}" if first["where"] else first["message"]
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, _sentence(said), errors=errors)


def where(loc: Sequence[int | str]) -> str:
    """Return a place in a body as people write it.

    Examples
    --------
    >>> where(("inputs", 0, "text"))
    'inputs[0].text'
    """
    made = ""
    for step in loc:
        if isinstance(step, int):
            made += f"[{step}]"
        else:
            made += f".{step[:100]}" if made else step[:100]
    return made


def problem_of(error: Exception, asked: str) -> Problem:
    """Return a failure as the client is told it; what is our fault goes into the log as well."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, ClientDisconnect):  # nobody will read this
        return Problem(HTTPStatus.BAD_REQUEST, "the body did not come to its end.")
    if isinstance(error, StoreUnavailable | StoreUnfit):
        _log.warning("%s", error)
        return Problem.busy(
            "the database cannot be reached, and nothing is decided without a record: try again."
        )
    if isinstance(error, InputError):
        return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
    _log.error("%s failed", asked, exc_info=error)
    said = "a fault in the service: its log has the details; the request was not answered."
    return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, said)


def handle_problems(app: FastAPI) -> None:
    """Make an app tell every failure as a problem."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    for kind in (Problem, ClientDisconnect, CalibrantError, Exception):
        app.add_exception_handler(kind, _told)


async def _told(request: Request, error: Exception) -> Response:
    return await _answer(request, problem_of(error, f"{request.method} {request.scope['path']!r}"))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = {
        404: f"there is nothing at {request.scope['path'][:200]!r}: /docs lists what there is.",
        405: f"{request.method} is not for this address: see the Allow header, or /docs.",
    }.get(error.status_code, str(error.detail))
    return await _answer(request, Problem(error.status_code, detail, headers=error.headers))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    said = f"{where(first['loc'])}: {first['msg']}"
    return await _answer(request, Problem(HTTPStatus.UNPROCESSABLE_ENTITY, _sentence(said)))


async def _answer(request: Request, problem: Problem) -> Response:
    """Tell a problem as JSON or, to a person who looks at the console, as a page."""
    console: Console | None = getattr(request.app.state, "console", None)
    if console is not None and console.has(request.scope["path"]):
        return await console.problem_page(request, problem)
    return problem_response(problem)


def _said(fault: Mapping[str, Any]) -> str:
    """Return what is wrong; our own checks speak for themselves."""
    known = {
        "missing": "this field is needed",
        "extra_forbidden": "there is no such field",
        "too_short": "at least one is needed",
        "string_pattern_mismatch": "control characters are not allowed",
    }
    said: str = known.get(fault["type"], fault["msg"])
    return said.removeprefix("Value error, ")


def _sentence(said: str) -> str:
    return said if said.endswith(".") else f"{said}."
