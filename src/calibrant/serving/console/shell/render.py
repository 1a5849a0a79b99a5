"""Template rendering with security headers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, TemplateNotFound
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from calibrant.formatting import percent
from calibrant.reports.evaluation.page import add_break_hints
from calibrant.reports.evaluation.page_data import script_json
from calibrant.serving.console.pages.predictions.wording import (
    direction_marks,
    isolate_direction,
    make_visible,
)
from calibrant.serving.console.shell.access import Visitor, login_url, set_session_cookie
from calibrant.serving.console.shell.assets import asset_url, console_folders
from calibrant.serving.routes.requests import service_of

NAVIGATION = (
    ("/console", "Overview"),
    ("/console/model", "Model"),
    ("/console/thresholds", "Thresholds"),
    ("/console/predictions", "Predictions"),
    ("/console/try", "Try it"),
)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Run scripts of this origin only and load nothing from elsewhere; plotly needs inline styles."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def render_page(
    request: Request, visitor: Visitor | None, template: str, *, status: int = 200, **data: Any
) -> HTMLResponse:
    """Render a template as a response with the console's security headers."""
    service = service_of(request)
    csrf = "" if visitor is None else visitor.csrf
    text = _environment().get_template(template).render(
        visitor=visitor,
        served=service.slot.current,
        refused=service.slot.refused,
        needs_key=service.settings.keys_needed,
        direction_marks=direction_marks("".join(service.slot.current.classes)),
        active=_active_entry(request.scope["path"]),
        navigation=NAVIGATION,
        csrf_field=partial(_csrf_field, csrf),
        **data,
    )  # fmt: skip
    response = HTMLResponse(text.encode("utf-8", "xmlcharrefreplace"), status, dict(_HEADERS))
    session = getattr(request.state, "new_session", None)
    if session is not None:
        set_session_cookie(request, response, session)
    return response


def redirect_to(path: str) -> RedirectResponse:
    """Redirect after a form was handled, so that reloading does not resend it."""
    return RedirectResponse(path, HTTPStatus.SEE_OTHER, dict(_HEADERS))


def redirect_to_login(request: Request) -> RedirectResponse:
    """Redirect to the login page, which leads back to the requested page."""
    return redirect_to(login_url(request))


def format_moment(at: datetime | None) -> Markup:
    """Format a UTC time as an HTML `time` element."""
    if at is None:
        return Markup("\N{EN DASH}")
    utc = at.astimezone(UTC)
    words = f"{utc.day} {utc:%b %Y, %H:%M:%S} UTC"
    return Markup('<time datetime="{}">{}</time>').format(utc.isoformat(timespec="seconds"), words)


def _active_entry(path: str) -> str:
    """Return the navigation entry that a page belongs to."""
    home, *others = (entry for entry, _ in NAVIGATION)
    return next((entry for entry in others if f"{path}/".startswith(f"{entry}/")), home)


def _csrf_field(token: str) -> Markup:
    return Markup('<input type="hidden" name="csrf" value="{}">').format(token)


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_load_template),
    )
    filters: dict[str, Callable[..., Any]] = {
        "soft": add_break_hints,
        "isolated": lambda text: isolate_direction(make_visible(text)),
        "moment": format_moment,
        "percent": lambda share: percent(share).replace(" ", "\N{NO-BREAK SPACE}"),
        "count": lambda n: f"{n:,}",
    }
    environment.filters.update(filters)
    environment.globals.update(
        static=asset_url, script_json=lambda value: Markup(script_json(value))
    )
    return environment


def _load_template(name: str) -> str:
    """Return the source of a console template, falling back to those of the reports."""
    for folder in (*console_folders(), files("calibrant.reports").joinpath("templates")):
        source = folder.joinpath(name)
        if source.is_file():
            return source.read_text("utf-8")
    raise TemplateNotFound(name)
