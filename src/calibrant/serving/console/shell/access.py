"""Authentication and authorisation of console visitors."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from calibrant.errors import CalibrantError
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.console.shell.page_pool import PagePool
from calibrant.serving.console.shell.sessions import LIFETIME, Session, Sessions
from calibrant.serving.http.bodies import read_body
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import service_of
from calibrant.serving.service import Service
from calibrant.serving.store_calls import within
from calibrant.store import Key

LOGIN = "/console/login"
_FORM = "application/x-www-form-urlencoded"
_MAX_FORM_BYTES = 1_048_576
"""Largest form: a message of 20,000 characters takes at most a quarter of it."""

_OUTDATED = (
    "the form was not sent from this page, or the page is from an earlier session: go back, reload "
    "it and send the form again; nothing was changed."
)


class LoginRequired(Problem):
    """Raised when a visitor must log in; without a `detail` for one who has no cookie yet."""

    def __init__(self, detail: str = "") -> None:
        super().__init__(HTTPStatus.UNAUTHORIZED, detail or "log in first.")
        self.expected = not detail


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person who uses the console."""

    key: Key | None  # the visitor's key; None if the service does not require keys
    session: Session
    csrf: str  # token that the visitor's forms must carry

    @property
    def name(self) -> str:
        """Name shown on the page."""
        return "local visitor" if self.key is None else self.key.name

    @property
    def role(self) -> str:
        """Role of the key; without keys, every visitor is an admin."""
        return "admin" if self.key is None else self.key.role

    def may(self, role: str) -> bool:
        """Whether the visitor may do what requires `role`."""
        return self.role in (role, "admin")


def require_visitor(role: str | None = None) -> Callable[[Request], Awaitable[Visitor]]:
    """Return a dependency that authenticates a visitor and checks the role of the key."""

    async def authenticate(request: Request) -> Visitor:
        visitor = await _authenticate(request)
        request.state.visitor = visitor
        if role is not None and not visitor.may(role):
            raise Problem(
                HTTPStatus.FORBIDDEN,
                f"your key has the role {visitor.role!r}, but this requires {role!r}: log in with "
                "another key; nothing was changed.",
            )
        return visitor

    return authenticate


async def find_visitor(request: Request) -> Visitor | None:
    """Return the visitor of a failed request, or None if unknown."""
    visitor: Visitor | None = getattr(request.state, "visitor", None)
    if visitor is None:
        with suppress(CalibrantError, Problem):
            visitor = await _authenticate(request)
    return visitor


async def read_form(request: Request, visitor: Visitor) -> Form:
    """Read a visitor's form and check its CSRF token."""
    return await read_session_form(request, visitor.session)


async def read_session_form(request: Request, session: Session) -> Form:
    """Read a form; refuse one without the session's CSRF token."""
    # Browsers send the origin of a request in a header that no page can set.
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Problem(HTTPStatus.FORBIDDEN, _OUTDATED)
    form = await parse_form(request)
    if not sessions_of(request).verify_csrf(session, form.fields.get("csrf", "")):
        raise Problem(HTTPStatus.FORBIDDEN, _OUTDATED)
    return form


async def parse_form(request: Request) -> Form:
    """Parse a form without checking a CSRF token."""
    return Form.from_body(await read_body(request.headers, request.receive, _MAX_FORM_BYTES, _FORM))


def sessions_of(request: Request) -> Sessions:
    """Return the session manager of the application."""
    sessions: Sessions = request.app.state.console.sessions
    return sessions


def page_pool_of(request: Request) -> PagePool:
    """Return the worker pool for slow pages."""
    pool: PagePool = request.app.state.console.page_pool
    return pool


def session_of(request: Request) -> Session | None:
    """Return the unexpired session of a request's cookie, or None."""
    cookie = request.cookies.get(_cookie_name(request))
    session = None if cookie is None else sessions_of(request).decode(cookie)
    return None if session is None or session.is_expired(time.time()) else session


def set_session_cookie(request: Request, response: Response, session: Session | None) -> None:
    """Set the cookie of a session, or delete it if `session` is None.

    Its name contains the port, because browsers share cookies between the ports of a host.
    """
    # A proxy may terminate TLS. Forging its header only loses the client its own cookie.
    forwarded = request.headers.get("x-forwarded-proto", "").strip().lower()
    secure = "https" in (request.url.scheme, forwarded)
    cookie = "" if session is None else sessions_of(request).encode(session)
    response.set_cookie(
        _cookie_name(request), cookie, max_age=LIFETIME if cookie else 0, path="/console",
        secure=secure, httponly=True, samesite="lax",
    )  # fmt: skip


def login_url(request: Request) -> str:
    """Return the URL of the login page, which leads back to the requested page."""
    return f"{LOGIN}?next={quote(path_and_query(request), safe='')}"


def path_and_query(request: Request) -> str:
    """Return the path and query string of a request."""
    path: str = request.scope["path"]
    return f"{path}?{request.url.query}" if request.url.query else path


async def _load_secret(request: Request) -> None:
    """Load the secret that signs cookies, which may have to be read from the store."""
    service = service_of(request)
    await within(service.settings.timeout, lambda: service.store.keyed_hash(b""))


def _cookie_name(request: Request) -> str:
    port = request.url.port
    return f"calibrant_{port}" if port else "calibrant"


async def _authenticate(request: Request) -> Visitor:
    await _load_secret(request)
    service, sessions = service_of(request), sessions_of(request)
    if not service.settings.keys_needed:
        session = session_of(request)
        if session is None or session.key is not None:
            session = request.state.new_session = sessions.create(None)
        return Visitor(None, session, sessions.csrf(session))
    session = _require_session(request)
    key, logged_out = await within(service.settings.timeout, lambda: _load_key(service, session))
    if logged_out:
        raise LoginRequired("you have logged out: log in again.")
    if key is None or key.revoked is not None:
        raise LoginRequired("your key was revoked: log in with another one.")
    service.access.take(key)
    return Visitor(key, session, sessions.csrf(session))


def _load_key(service: Service, session: Session) -> tuple[Key | None, bool]:
    """Return the key of a session, and whether the visitor has logged out."""
    store = service.store
    return store.keys.get(session.key or ""), store.visits.ended(session.id)


def _require_session(request: Request) -> Session:
    """Return the session of a visitor with a key; others are sent to the login page."""
    cookie = request.cookies.get(_cookie_name(request))
    session = None if cookie is None else sessions_of(request).decode(cookie)
    if cookie is not None and session is None:
        raise LoginRequired("your session cookie is damaged or from another service: log in again.")
    if session is None or session.key is None:
        is_read = request.method in ("GET", "HEAD")
        raise LoginRequired("" if is_read else "you are not logged in; nothing was changed.")
    if session.is_expired(time.time()):
        raise LoginRequired("your session has expired after 8 hours: log in again.")
    return session
