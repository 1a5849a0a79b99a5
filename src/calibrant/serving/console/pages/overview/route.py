"""`/console`: the Overview page, and what refreshes it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.overview.first_request import sending
from calibrant.serving.console.pages.overview.shift import is_known
from calibrant.serving.console.pages.overview.traffic import WINDOWS, Window
from calibrant.serving.console.pages.overview.view import (
    MOST_AUDITED,
    counts_of,
    live_of,
    overview,
    past_of,
)
from calibrant.serving.console.shell.access import Visitor, visitor, workshop_of
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.console.shell.render import page
from calibrant.serving.routes.requests import service_of
from calibrant.serving.store_calls import within
from calibrant.store import Store

__all__ = ["router"]

router = APIRouter(prefix="/console", include_in_schema=False)


@router.get("")
async def overview_page(
    request: Request, looks: Annotated[Visitor, Depends(visitor())]
) -> Response:
    """Show the promise, the traffic, and whether what comes in is like the calibrate rows."""
    service, form = service_of(request), Form.of_query(request)
    name = form.choice("window", WINDOWS) or next(iter(WINDOWS))
    own = form.choice("bundle", ["current", "all"]) != "all"
    served = service.slot.current
    seconds = service.settings.timeout
    if not is_known(served.bundle):  # its calibrate rows are scored once, which takes a while
        await workshop_of(request).do(seconds, lambda: past_of(served.bundle))
    found = await within(seconds, lambda: _gathered(service.store, served, name, own=own))
    send = sending(served, str(request.base_url), needs_key=service.settings.keys_needed)
    return page(
        request, looks, "overview.html.j2", own=own, windows=WINDOWS, send=send,
        most_audited=MOST_AUDITED, **found,
    )  # fmt: skip


@router.get("/live")
async def live(request: Request, looks: Annotated[Visitor, Depends(visitor())]) -> Response:
    """Tell the page what comes in just now, and which bundle serves."""
    service = service_of(request)
    now = datetime.now(UTC)
    found = await within(service.settings.timeout, lambda: live_of(service.store, now))
    return JSONResponse({**found.to_dict(), "bundle": service.slot.current.hash})


def _gathered(store: Store, served: Served, name: str, *, own: bool) -> dict[str, Any]:
    """Return what the page shows."""
    window = Window.of(name, datetime.now(UTC))
    past, why = past_of(served.bundle)
    if not own:
        why = "The calibrate rows are those of the bundle that serves: choose it to compare."
    counts = counts_of(store, window, served.bundle if own else None)
    return {
        "shown": overview(counts, served.bundle, window, past, own=own),
        "live": live_of(store, window.now),
        "why_not": why,
    }
