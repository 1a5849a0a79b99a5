"""Pages of the console: templates filled, with the headers that keep them safe."""

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
from calibrant.serving.console.pages.predictions.wording import isolated, turns, visible
from calibrant.serving.console.shell.access import Visitor, keep_session, login_address
from calibrant.serving.console.shell.assets import address_of
from calibrant.serving.routes.requests import service_of

__all__ = ["NAVIGATION", "POLICY", "go_to", "moment", "page", "to_login"]

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
"""Only our own scripts run, and nothing is loaded from elsewhere; plotly needs inline styles."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def page(
    request: Request, visitor: Visitor | None, template: str, *, status: int = 200, **data: Any
) -> HTMLResponse:
    """Return a page."""
    service = service_of(request)
    csrf = "" if visitor is None else visitor.csrf
    text = _environment().get_template(template).render(
        visitor=visitor,
        served=service.slot.current,
        refused=service.slot.refused,
        needs_key=service.settings.keys_needed,
        turning=turns("".join(service.slot.current.classes)),
        here=_here(request.scope["path"]),
        navigation=NAVIGATION,
        csrf_field=partial(_csrf_field, csrf),
        **data,
    )  # fmt: skip
    response = HTMLResponse(text.encode("utf-8", "xmlcharrefreplace"), status, dict(_HEADERS))
    begun = getattr(request.state, "begun", None)
    if begun is not None:
        keep_session(request, response, begun)
    return response


def go_to(path: str) -> RedirectResponse:
    """Send a visitor to a page after what they sent was done: loading it again repeats nothing."""
    return RedirectResponse(path, HTTPStatus.SEE_OTHER, dict(_HEADERS))


def to_login(request: Request) -> RedirectResponse:
    """Send a visitor to the login page, which leads back."""
    return go_to(login_address(request))


def moment(at: datetime | None) -> Markup:
    """Write a moment for people and for programs.

    Examples
    --------
    >>> str(moment(datetime(2026, 1, 31, 9, 5, 7, tzinfo=UTC)))
    '<time datetime="2026-01-31T09:05:07+00:00">31 Jan 2026, 09:05:07 UTC</time>'
    """
    if at is None:
        return Markup("\N{EN DASH}")
    there = at.astimezone(UTC)
    words = f"{there.day} {there:%b %Y, %H:%M:%S} UTC"
    return Markup('<time datetime="{}">{}</time>').format(
        there.isoformat(timespec="seconds"), words
    )


def _here(path: str) -> str:
    """Return which entry of the navigation a page belongs to."""
    home, *others = (entry for entry, _ in NAVIGATION)
    return next((each for each in others if f"{path}/".startswith(f"{each}/")), home)


def _csrf_field(token: str) -> Markup:
    return Markup('<input type="hidden" name="csrf" value="{}">').format(token)


@cache
def _environment() -> Environment:
    made = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_template),
    )
    filters: dict[str, Callable[..., Any]] = {
        "soft": add_break_hints,
        "isolated": lambda text: isolated(visible(text)),
        "moment": moment,
        "percent": lambda share: percent(share).replace(" ", "\N{NO-BREAK SPACE}"),
        "count": lambda n: f"{n:,}",
    }
    made.filters.update(filters)
    made.globals.update(static=address_of, script_json=lambda value: Markup(script_json(value)))
    return made


def _template(name: str) -> str:
    """Return a template of the console or, where it has none of that name, one of the reports."""
    for package in ("calibrant.serving.console", "calibrant.reports"):
        source = files(package).joinpath("templates", name)
        if source.is_file():
            return source.read_text("utf-8")
    raise TemplateNotFound(name)
