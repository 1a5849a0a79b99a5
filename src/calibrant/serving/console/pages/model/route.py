"""`/console/model`: the bundle that serves, and the report of the study that made it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from calibrant.serving.console.pages.model.files import REPORT, bundle_file
from calibrant.serving.console.pages.model.view import model_data
from calibrant.serving.console.shell.access import Visitor, visitor
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.console.shell.render import page
from calibrant.serving.routes.requests import service_of
from calibrant.serving.store_calls import within

__all__ = ["router"]

router = APIRouter(prefix="/console", include_in_schema=False)

_SANDBOX = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:"
)
"""A report brings its own scripts: they run without the visitor's cookie and load nothing."""


@router.get("/model")
async def model(request: Request, looking: Annotated[Visitor, Depends(visitor())]) -> Response:
    """Show what is known about the bundle."""
    service = service_of(request)
    served = service.slot.current
    found = await within(service.settings.timeout, lambda: model_data(served))
    return page(request, looking, "model.html.j2", shown=served, **found)


@router.get("/model/report", dependencies=[Depends(visitor())])
async def report(request: Request) -> Response:
    """Return the report, as a page of its own or to be kept."""
    service = service_of(request)
    served = service.slot.current
    kept = Form.of_query(request).choice("download", ["1"]) is not None
    content = await within(service.settings.timeout, lambda: bundle_file(served, REPORT))
    headers = {
        "Content-Security-Policy": _SANDBOX,
        "Referrer-Policy": "no-referrer",
        "X-Frame-Options": "DENY",
    }
    if kept:
        headers["Content-Disposition"] = f'attachment; filename="report-{served.id}.html"'
    return Response(content, headers=headers, media_type="text/html; charset=utf-8")
