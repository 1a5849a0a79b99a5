"""The console application: routers, sessions, page pool and error pages."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from calibrant.serving.console.routes import ROUTERS
from calibrant.serving.console.shell.access import LoginRequired, find_visitor
from calibrant.serving.console.shell.login import login_page
from calibrant.serving.console.shell.page_pool import PagePool
from calibrant.serving.console.shell.render import redirect_to_login, render_page
from calibrant.serving.console.shell.sessions import Sessions
from calibrant.serving.http.problems import Problem
from calibrant.serving.service import Service

_HOME = "/console"


class Console:
    """Add the console's pages to an application.

    Parameters
    ----------
    app : application of the service
    service : service whose bundle and records are shown

    Attributes
    ----------
    sessions : creates and verifies session cookies
    page_pool : worker pool for slow pages
    """

    def __init__(self, app: FastAPI, service: Service) -> None:
        self.sessions = Sessions(service.store.keyed_hash)
        self.page_pool = PagePool()
        app.state.console = self
        for router in ROUTERS:
            app.include_router(router)

    def close(self) -> None:
        """Shut down the page pool."""
        self.page_pool.close()

    def has(self, path: str) -> bool:
        """Whether a path belongs to the console."""
        return path == _HOME or path.startswith(f"{_HOME}/")

    async def problem_page(self, request: Request, problem: Problem) -> Response:
        """Return the page that explains a problem and what to do about it."""
        if isinstance(problem, LoginRequired):
            if problem.expected:
                return redirect_to_login(request)
            return login_page(request, why=problem.detail, status=problem.status)
        response = render_page(
            request,
            await find_visitor(request),
            "problem.html.j2",
            status=problem.status,
            title=HTTPStatus(problem.status).phrase,
            detail=problem.detail[:1].upper() + problem.detail[1:],
        )
        response.headers.update(problem.headers)
        return response
