"""Who looks at the console, and what they may do there."""

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
from calibrant.serving.console.shell.page_pool import Workshop
from calibrant.serving.console.shell.sessions import LIFETIME, Session, Sessions
from calibrant.serving.http.bodies import read_body
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import service_of
from calibrant.serving.service import Service
from calibrant.serving.store_calls import within
from calibrant.store import Key

__all__ = [
    "LoginNeeded",
    "Visitor",
    "asked_address",
    "checked_form",
    "form_of",
    "keep_session",
    "known_visitor",
    "login_address",
    "sent_form",
    "session_of",
    "sessions_of",
    "visitor",
    "workshop_of",
]

LOGIN = "/console/login"
_FORM = "application/x-www-form-urlencoded"
_LARGEST = 1_048_576
"""Bytes of a form: a message of 20,000 characters takes a quarter of it at most."""

_OUTDATED = (
    "the form did not come from this page, or the page is from an earlier visit: go back, load it "
    "again and send it once more; nothing was changed."
)


class LoginNeeded(Problem):
    """A visitor must log in first; where nothing is wrong with that, the login page just opens.

    Parameters
    ----------
    detail : why; empty for one who comes without a cookie
    """

    def __init__(self, detail: str = "") -> None:
        super().__init__(HTTPStatus.UNAUTHORIZED, detail or "log in first.")
        self.expected = not detail


@dataclass(frozen=True, slots=True)
class Visitor:
    """Someone who looks at the console.

    Parameters
    ----------
    key : that they showed; None where the service needs none
    session : their visit
    csrf : what their forms must carry
    """

    key: Key | None
    session: Session
    csrf: str

    @property
    def name(self) -> str:
        """What the page calls them."""
        return "local visitor" if self.key is None else self.key.name

    @property
    def role(self) -> str:
        """The role of their key; without keys everybody is an administrator."""
        return "admin" if self.key is None else self.key.role

    def may(self, role: str) -> bool:
        """Tell whether they may do what needs a role."""
        return self.role in (role, "admin")


def visitor(role: str | None = None) -> Callable[[Request], Awaitable[Visitor]]:
    """Return what lets a visitor in; it refuses one whose key has another role."""

    async def admitted(request: Request) -> Visitor:
        found = await _visitor(request)
        request.state.visitor = found
        if role is not None and not found.may(role):
            raise Problem(
                HTTPStatus.FORBIDDEN,
                f"your key has the role {found.role!r}, but this needs {role!r}: log in with "
                "another key; nothing was changed.",
            )
        return found

    return admitted


async def known_visitor(request: Request) -> Visitor | None:
    """Return who sent a request that cannot be answered; None where that cannot be told."""
    found: Visitor | None = getattr(request.state, "visitor", None)
    if found is None:
        with suppress(CalibrantError, Problem):
            found = await _visitor(request)
    return found


async def sent_form(request: Request, visitor: Visitor) -> Form:
    """Read the form that a visitor sent; one that another page made is refused."""
    return await checked_form(request, visitor.session)


async def checked_form(request: Request, session: Session) -> Form:
    """Read a form; refuse one that does not carry the session's token."""
    # Browsers say where a request came from, in a header that no page can set.
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Problem(HTTPStatus.FORBIDDEN, _OUTDATED)
    form = await form_of(request)
    if not sessions_of(request).is_csrf(session, form.fields.get("csrf", "")):
        raise Problem(HTTPStatus.FORBIDDEN, _OUTDATED)
    return form


async def form_of(request: Request) -> Form:
    """Read a form, whoever made it."""
    return Form.of_body(await read_body(request.headers, request.receive, _LARGEST, _FORM))


def sessions_of(request: Request) -> Sessions:
    """Return what makes and reads the sessions of a service."""
    found: Sessions = request.app.state.console.sessions
    return found


def workshop_of(request: Request) -> Workshop:
    """Return where the long computations of pages are made."""
    found: Workshop = request.app.state.console.workshop
    return found


def session_of(request: Request) -> Session | None:
    """Return the session of a request's cookie; None where there is none, or a forged one."""
    cookie = request.cookies.get(_cookie_name(request))
    found = None if cookie is None else sessions_of(request).opened(cookie)
    return None if found is None or found.ended(time.time()) else found


def keep_session(request: Request, response: Response, session: Session | None) -> None:
    """Put the cookie of a session into an answer, or take it back where there is none.

    It has a name for each port, for browsers do not tell the ports of a host apart.
    """
    # A proxy may speak HTTPS for us. Who makes its header up only loses their own cookie.
    forwarded = request.headers.get("x-forwarded-proto", "").strip().lower()
    secure = "https" in (request.url.scheme, forwarded)
    cookie = "" if session is None else sessions_of(request).sealed(session)
    response.set_cookie(
        _cookie_name(request), cookie, max_age=LIFETIME if cookie else 0, path="/console",
        secure=secure, httponly=True, samesite="lax",
    )  # fmt: skip


def login_address(request: Request) -> str:
    """Return the address of the login page, which leads back to the page that was asked for."""
    return f"{LOGIN}?next={quote(asked_address(request), safe='')}"


def asked_address(request: Request) -> str:
    """Return the path and the query of a request."""
    path: str = request.scope["path"]
    return f"{path}?{request.url.query}" if request.url.query else path


async def _ready(request: Request) -> None:
    """Make sure that cookies can be signed: the secret may have to be read from the store."""
    service = service_of(request)
    await within(service.settings.timeout, lambda: service.store.keyed_hash(b""))


def _cookie_name(request: Request) -> str:
    port = request.url.port
    return f"calibrant_{port}" if port else "calibrant"


async def _visitor(request: Request) -> Visitor:
    await _ready(request)
    service, sessions = service_of(request), sessions_of(request)
    if not service.settings.keys_needed:
        session = session_of(request)
        if session is None or session.key is not None:
            session = request.state.begun = sessions.begin(None)
        return Visitor(None, session, sessions.csrf(session))
    session = _logged_in(request)
    found, ended = await within(service.settings.timeout, lambda: _looked_up(service, session))
    if ended:
        raise LoginNeeded("you have logged out: log in again.")
    if found is None or found.revoked is not None:
        raise LoginNeeded("your key was revoked: log in with another one.")
    service.access.take(found)
    return Visitor(found, session, sessions.csrf(session))


def _looked_up(service: Service, session: Session) -> tuple[Key | None, bool]:
    """Return the key of a session, and whether its visitor has logged out."""
    store = service.store
    return store.keys.get(session.key or ""), store.visits.ended(session.id)


def _logged_in(request: Request) -> Session:
    """Return the session of a visitor who showed a key; others are sent to the login page."""
    cookie = request.cookies.get(_cookie_name(request))
    session = None if cookie is None else sessions_of(request).opened(cookie)
    if cookie is not None and session is None:
        raise LoginNeeded("the cookie of your visit is damaged or was not made here: log in again.")
    if session is None or session.key is None:
        asks = request.method in ("GET", "HEAD")
        raise LoginNeeded("" if asks else "you are not logged in; nothing was changed.")
    if session.ended(time.time()):
        raise LoginNeeded("your visit has ended, as it does after 8 hours: log in again.")
    return session
