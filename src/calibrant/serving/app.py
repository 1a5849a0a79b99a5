"""The web application: routes, problems, counting, and the service's life."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

from calibrant.client.messages import OutcomesBody, PredictBody, ProblemAnswer
from calibrant.distribution import own_version
from calibrant.serving.console import Console
from calibrant.serving.http.api_page import api_page
from calibrant.serving.http.host_guard import Doorway
from calibrant.serving.http.problems import handle_problems
from calibrant.serving.routes import ROUTERS
from calibrant.serving.routes.units import EraseBody
from calibrant.serving.service import Service
from calibrant.serving.settings import Settings

__all__ = ["SETTINGS", "app_of_environment", "make_app"]

SETTINGS = "CALIBRANT_SERVE_SETTINGS"
"""Environment variable that tells worker processes the settings."""

_ABOUT = """
Calibrated probabilities, and decisions that keep a promise. Every prediction is on record before
it is answered. A request that may be sent twice should carry an `Idempotency-Key`.
"""


class _App(FastAPI):
    """FastAPI behind a `Doorway`, which is passed before any of the framework's own layers."""

    doorway: Doorway | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        assert self.doorway is not None
        await self.doorway(scope, receive, send)


def make_app(service: Service) -> FastAPI:
    """Return the application of a service that was prepared.

    Parameters
    ----------
    service : is started and stopped with the application
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        try:
            yield
        finally:
            console.close()
            await service.stop()

    app = _App(
        title="Calibrant", version=own_version(), description=_ABOUT, lifespan=lifespan,
        redirect_slashes=False, docs_url=None, redoc_url=None,
    )  # fmt: skip
    app.state.service = service
    handle_problems(app)
    for router in ROUTERS:
        app.include_router(router)
    console = Console(app, service)
    app.add_api_route(
        "/docs", lambda: HTMLResponse(api_page(app.openapi())), include_in_schema=False
    )
    app.doorway = Doorway(super(_App, app).__call__, service)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


def app_of_environment() -> FastAPI:
    """Return the application of a worker process; its settings come from the environment."""
    service = Service(Settings.from_json(os.environ[SETTINGS]))
    service.slot.load()  # the first process brought the database up to date
    return make_app(service)


def _described(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description, with the bodies that the routes read themselves."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    made = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas = made.setdefault("components", {}).setdefault("schemas", {})
    read = (PredictBody, OutcomesBody, EraseBody, ProblemAnswer)
    bodies = [(each, "validation") for each in read]
    _, definitions = models_json_schema(
        bodies,  # type: ignore[arg-type]
        ref_template="#/components/schemas/{model}",
    )
    schemas.update(definitions["$defs"])
    _without_validation(made)
    made["components"]["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "A key of calibrant keys add."}
    }
    made["security"] = [{}, {"key": []}]
    app.openapi_schema = made
    return made


def _without_validation(made: dict[str, Any]) -> None:
    """Take out the answer that FastAPI adds to every route with a path: a text is always good."""
    for name in ("HTTPValidationError", "ValidationError"):
        made["components"]["schemas"].pop(name, None)
    for methods in made["paths"].values():
        for route in methods.values():
            if "application/json" in route["responses"].get("422", {}).get("content", {}):
                del route["responses"]["422"]
