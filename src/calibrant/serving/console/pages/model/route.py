"""`/console/model`: the bundle being served, and the report of its study."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from calibrant.serving.console.pages.model.view import REPORT, bundle_file, model_data
from calibrant.serving.console.shell.access import Visitor, require_visitor
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.console.shell.render import render_page
from calibrant.serving.routes.requests import service_of
from calibrant.serving.store_calls import within

router = APIRouter(prefix="/console", include_in_schema=False)

_SANDBOX = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:"
)
"""A report has its own scripts: they run without the visitor's cookie and load nothing."""


@router.get("/model")
async def model(
    request: Request, visitor: Annotated[Visitor, Depends(require_visitor())]
) -> Response:
    """Show the Model page."""
    service = service_of(request)
    served = service.slot.current
    data = await within(service.settings.timeout, lambda: model_data(served))
    return render_page(request, visitor, "model.html.j2", shown=served, **data)


@router.get("/model/report", dependencies=[Depends(require_visitor())])
async def report(request: Request) -> Response:
    """Return the report as a page or as a download."""
    service = service_of(request)
    served = service.slot.current
    download = Form.from_query(request).choice("download", ["1"]) is not None
    content = await within(service.settings.timeout, lambda: bundle_file(served, REPORT))
    headers = {
        "Content-Security-Policy": _SANDBOX,
        "Referrer-Policy": "no-referrer",
        "X-Frame-Options": "DENY",
    }
    if download:
        headers["Content-Disposition"] = f'attachment; filename="report-{served.id}.html"'
    return Response(content, headers=headers, media_type="text/html; charset=utf-8")
