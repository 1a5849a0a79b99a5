"""The console of a service: its pages, who is logged in, and how it tells problems."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from calibrant.serving.console.routes import ROUTERS
from calibrant.serving.console.shell.access import LoginNeeded, known_visitor
from calibrant.serving.console.shell.login import login_page
from calibrant.serving.console.shell.page_pool import Workshop
from calibrant.serving.console.shell.render import page, to_login
from calibrant.serving.console.shell.sessions import Sessions
from calibrant.serving.http.problems import Problem
from calibrant.serving.service import Service

__all__ = ["Console"]

_HOME = "/console"


class Console:
    """Adds its pages to an application.

    Parameters
    ----------
    app : of the service
    service : whose bundle and records are shown

    Attributes
    ----------
    sessions : makes and reads the cookies of visits
    workshop : computes pages that take long
    """

    def __init__(self, app: FastAPI, service: Service) -> None:
        self.sessions = Sessions(service.store.keyed_hash)
        self.workshop = Workshop()
        app.state.console = self
        for router in ROUTERS:
            app.include_router(router)

    def close(self) -> None:
        """Compute no more pages."""
        self.workshop.close()

    def has(self, path: str) -> bool:
        """Tell whether an address is one of the console's."""
        return path == _HOME or path.startswith(f"{_HOME}/")

    async def problem_page(self, request: Request, problem: Problem) -> Response:
        """Return the page that tells a problem: what happened, and what to do.

        Parameters
        ----------
        request : that cannot be answered
        problem : why
        """
        if isinstance(problem, LoginNeeded):
            if problem.expected:
                return to_login(request)
            return login_page(request, why=problem.detail, status=problem.status)
        made = page(
            request,
            await known_visitor(request),
            "problem.html.j2",
            status=problem.status,
            title=HTTPStatus(problem.status).phrase,
            detail=problem.detail[:1].upper() + problem.detail[1:],
        )
        made.headers.update(problem.headers)
        return made
