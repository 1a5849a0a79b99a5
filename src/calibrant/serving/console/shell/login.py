"""`/console/login` and `/console/logout`."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from calibrant.serving.console.shell.access import (
    LoginRequired,
    Visitor,
    parse_form,
    path_and_query,
    read_form,
    read_session_form,
    require_visitor,
    session_of,
    sessions_of,
    set_session_cookie,
)
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.console.shell.render import redirect_to, render_page
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import service_of
from calibrant.serving.store_calls import within
from calibrant.store.keys import TOKEN

router = APIRouter(prefix="/console", include_in_schema=False)


@router.get("/login")
async def login(request: Request) -> Response:
    """Show the login form."""
    try:
        await require_visitor()(request)
    except LoginRequired:
        return login_page(request)
    return redirect_to(_next_page(Form.from_query(request)))


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Start a session with a key and redirect to the requested page."""
    with suppress(LoginRequired):
        return await _handle_second_login(request, await require_visitor()(request))
    session = session_of(request)
    if session is None:
        why = "the page was open for too long, or your browser blocks cookies: try again."
        return login_page(request, why=why, status=HTTPStatus.FORBIDDEN)
    form = await read_session_form(request, session)
    service = service_of(request)
    try:
        key = await service.access.admit(f"Bearer {form.raw('key', max_length=200).strip()}", None)
    except Problem as problem:
        if problem.status != HTTPStatus.UNAUTHORIZED:
            raise
        return login_page(request, why=problem.detail, status=problem.status, form=form)
    assert key is not None  # a token was sent
    response = redirect_to(_next_page(form))
    set_session_cookie(request, response, sessions_of(request).create(key.id))
    return response


@router.post("/logout")
async def log_out(
    request: Request, visitor: Annotated[Visitor, Depends(require_visitor())]
) -> Response:
    """End a session for good: copies of its cookie stop working."""
    await read_form(request, visitor)
    service, session = service_of(request), visitor.session
    expires = datetime.fromtimestamp(session.expires, UTC)
    await within(
        service.settings.timeout, lambda: service.store.visits.end(session.id, expires=expires)
    )
    response = redirect_to("/console/login")
    set_session_cookie(request, response, None)
    return response


def login_page(
    request: Request, *, why: str = "", status: int = HTTPStatus.OK, form: Form | None = None
) -> Response:
    """Return the page with the login form."""
    sessions = sessions_of(request)
    # The form has its own session, so that no other site can log a visitor in.
    # It is reused while its cookie exists, because several windows may be open.
    session = session_of(request)
    if session is None or session.key is not None:
        session = sessions.create(None)
    token = sessions.csrf(session)
    request.state.new_session = session
    fields = form or Form.from_query(request)
    on_login = request.scope["path"] == "/console/login"
    return render_page(
        request,
        None,
        "login.html.j2",
        status=status,
        why=why[:1].upper() + why[1:],
        next=_next_page(fields) if on_login else _current_page(request),
        token=token,
    )


async def _handle_second_login(request: Request, visitor: Visitor) -> Response:
    """Handle a login from a second window; with the same key it only redirects."""
    form = await parse_form(request)
    token = TOKEN.fullmatch(form.raw("key", max_length=200).strip())
    if visitor.key is None or (token is not None and token[1] == visitor.key.id):
        return redirect_to(_next_page(form))
    raise Problem(
        HTTPStatus.CONFLICT,
        f"you are already logged in with the key {visitor.name!r}: log out first, then log in with "
        "another key.",
    )


def _current_page(request: Request) -> str:
    """Return the page to show after login; a form that was sent is not sent again."""
    if request.method != "GET":
        return "/console"
    return path_and_query(request)


def _next_page(form: Form) -> str:
    """Return the requested page of the console, never an address elsewhere."""
    path = form.raw("next", max_length=4_000)
    inside = path == "/console" or path.startswith(("/console/", "/console?"))
    return path if inside and path.isascii() and path.isprintable() else "/console"
