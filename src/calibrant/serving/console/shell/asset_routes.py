"""`/console/static`: scripts and styles."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request
from starlette.responses import Response

from calibrant.serving.console.shell.assets import asset_response
from calibrant.serving.http.problems import Problem

__all__ = ["router"]

router = APIRouter(prefix="/console/static", include_in_schema=False)


@router.get("/{version}/{name}")
def asset(request: Request, version: str, name: str) -> Response:
    """Return a script or style, which needs no login."""
    gzipped = "gzip" in request.headers.get("accept-encoding", "")
    response = asset_response(version, name, gzipped=gzipped)
    if response is None:
        raise Problem(HTTPStatus.NOT_FOUND, "file not found: reload the page.")
    return response
