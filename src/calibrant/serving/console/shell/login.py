"""`/console/login` and `/console/logout`: a visit begins with a key."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from calibrant.serving.console.shell.access import (
    LoginNeeded,
    Visitor,
    asked_address,
    checked_form,
    form_of,
    keep_session,
    sent_form,
    session_of,
    sessions_of,
    visitor,
)
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.console.shell.render import go_to, page
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import service_of
from calibrant.serving.store_calls import within
from calibrant.store.keys import TOKEN

__all__ = ["login_page", "router"]

router = APIRouter(prefix="/console", include_in_schema=False)


@router.get("/login")
async def login(request: Request) -> Response:
    """Show the form for a key."""
    try:
        await visitor()(request)
    except LoginNeeded:
        return login_page(request)
    return go_to(_next(Form.of_query(request)))


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Begin a visit with a key; the visitor goes on to the page they wanted."""
    with suppress(LoginNeeded):
        return await _logged_in_already(request, await visitor()(request))
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
    """End a visit for good: a copy of its cookie opens nothing any more."""
    await sent_form(request, seen)
    service, session = service_of(request), seen.session
    expires = datetime.fromtimestamp(session.expires, UTC)
    await within(
        service.settings.timeout, lambda: service.store.visits.end(session.id, expires=expires)
    )
    response = go_to("/console/login")
    keep_session(request, response, None)
    return response


def login_page(
    request: Request, *, why: str = "", status: int = HTTPStatus.OK, form: Form | None = None
) -> Response:
    """Return the page that asks for a key."""
    sessions = sessions_of(request)
    # The form has a session of its own, so that no other page can log somebody in.
    # It stays the same as long as its cookie is there, for several windows may wait.
    waiting = session_of(request)
    if waiting is None or waiting.key is not None:
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


async def _logged_in_already(request: Request, seen: Visitor) -> Response:
    """Answer a login from a second window: with the same key it leads on, and changes nothing."""
    form = await form_of(request)
    token = TOKEN.fullmatch(form.raw("key", most=200).strip())
    if seen.key is None or (token is not None and token[1] == seen.key.id):
        return go_to(_next(form))
    raise Problem(
        HTTPStatus.CONFLICT,
        f"you are logged in already, with the key {seen.name!r}: log out first, then log in with "
        "another key.",
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
