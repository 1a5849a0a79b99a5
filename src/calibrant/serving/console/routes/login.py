"""`/console/login` and `/console/logout`: a visit begins with a key."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from calibrant.serving.console.entrance import (
    Visitor,
    asked_address,
    checked_form,
    keep_session,
    ready,
    sent_form,
    session_of,
    sessions_of,
    visitor,
)
from calibrant.serving.console.forms import Form
from calibrant.serving.console.pages import go_to, page
from calibrant.serving.problems import Problem
from calibrant.serving.routes.requests import service_of

__all__ = ["login_page", "router"]

router = APIRouter(prefix="/console", include_in_schema=False)


@router.get("/login")
async def login(request: Request) -> Response:
    """Show the form for a key."""
    await ready(request)
    if not service_of(request).settings.keys_needed:
        return go_to(_next(Form.of_query(request)))
    return login_page(request)


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Begin a visit with a key; the visitor goes on to the page they wanted."""
    await ready(request)
    waiting = session_of(request)
    if waiting is None:
        why = "the page waited too long, or your browser keeps no cookies: try again."
        return login_page(request, why=why, status=HTTPStatus.FORBIDDEN)
    form = await checked_form(request, waiting)
    service = service_of(request)
    try:
        key = await service.access.admit(f"Bearer {form.raw('key', most=200).strip()}", None)
    except Problem as problem:
        if problem.status != HTTPStatus.UNAUTHORIZED:
            raise
        return login_page(request, why=problem.detail, status=problem.status, form=form)
    assert key is not None  # a token was given
    response = go_to(_next(form))
    keep_session(request, response, sessions_of(request).begin(key.id))
    return response


@router.post("/logout")
async def log_out(request: Request, seen: Annotated[Visitor, Depends(visitor())]) -> Response:
    """End a visit."""
    await sent_form(request, seen)
    response = go_to("/console/login")
    keep_session(request, response, None)
    return response


def login_page(
    request: Request, *, why: str = "", status: int = HTTPStatus.OK, form: Form | None = None
) -> Response:
    """Return the page that asks for a key.

    Parameters
    ----------
    request : that asked for it, or that cannot be answered without a key
    why : what was wrong; empty where nothing was
    status : of the answer
    form : what was sent before
    """
    sessions = sessions_of(request)
    # The form has a session of its own, so that no other page can log somebody in.
    waiting = sessions.begin(None)
    token = sessions.csrf(waiting)
    request.state.begun = waiting
    asked = form or Form.of_query(request)
    on_login = request.scope["path"] == "/console/login"
    return page(
        request,
        None,
        "login.html.j2",
        status=status,
        why=why[:1].upper() + why[1:],
        next=_next(asked) if on_login else _return_to(request),
        token=token,
    )


def _return_to(request: Request) -> str:
    """Return the page to go on to; what was sent to it is not sent again."""
    if request.method != "GET":
        return "/console"
    return asked_address(request)


def _next(form: Form) -> str:
    """Return the page of the console that was wanted; never an address elsewhere."""
    wanted = form.raw("next", most=4_000)
    inside = wanted == "/console" or wanted.startswith(("/console/", "/console?"))
    return wanted if inside and wanted.isascii() and wanted.isprintable() else "/console"
