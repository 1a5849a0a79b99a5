"""FastAPI application: routes, error handling, middleware and lifespan.

`_App.__call__` -> `HostGuard` -> `PredictEndpoint` for `POST /v1/predict`, else FastAPI's router.
"""

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
from calibrant.serving.http.api_page import render_api_page
from calibrant.serving.http.middleware import HostGuard
from calibrant.serving.http.problems import handle_problems
from calibrant.serving.routes import ROUTERS
from calibrant.serving.routes.units import EraseBody
from calibrant.serving.service import Service
from calibrant.serving.settings import Settings

SETTINGS = "CALIBRANT_SERVE_SETTINGS"
"""Environment variable that passes the settings to worker processes."""

_DESCRIPTION = """
Calibrated probabilities and decisions with statistical guarantees. Every prediction is recorded
before it is returned. Send an `Idempotency-Key` with requests that may be retried.
"""


class _App(FastAPI):
    """FastAPI behind a `HostGuard`, which runs before all of the framework's own layers."""

    host_guard: HostGuard | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        assert self.host_guard is not None
        await self.host_guard(scope, receive, send)


def make_app(service: Service) -> FastAPI:
    """Return the ASGI application of a prepared service.

    Parameters
    ----------
    service : a service after `prepare`; the application starts and stops it
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
        title="Calibrant", version=own_version(), description=_DESCRIPTION, lifespan=lifespan,
        redirect_slashes=False, docs_url=None, redoc_url=None,
    )  # fmt: skip
    app.state.service = service
    handle_problems(app)
    for router in ROUTERS:
        app.include_router(router)
    console = Console(app, service)
    app.add_api_route(
        "/docs", lambda: HTMLResponse(render_api_page(app.openapi())), include_in_schema=False
    )
    app.host_guard = HostGuard(super(_App, app).__call__, service)
    app.openapi = lambda: _openapi_schema(app)  # type: ignore[method-assign]
    return app


def app_from_environment() -> FastAPI:
    """Return the application of a worker process, with settings from the environment."""
    service = Service(Settings.from_json(os.environ[SETTINGS]))
    service.slot.load()  # the parent process has migrated the database
    return make_app(service)


def _openapi_schema(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI schema, including bodies that routes parse themselves."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    schema = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    parsed = (PredictBody, OutcomesBody, EraseBody, ProblemAnswer)
    bodies = [(each, "validation") for each in parsed]
    _, definitions = models_json_schema(
        bodies,  # type: ignore[arg-type]
        ref_template="#/components/schemas/{model}",
    )
    schemas.update(definitions["$defs"])
    _remove_validation_errors(schema)
    schema["components"]["securitySchemes"] = {
        "key": {
            "type": "http",
            "scheme": "bearer",
            "description": "A key created by calibrant keys add.",
        }
    }
    schema["security"] = [{}, {"key": []}]
    app.openapi_schema = schema
    return schema


def _remove_validation_errors(schema: dict[str, Any]) -> None:
    """Remove the 422 that FastAPI adds to routes with path parameters: any text is valid."""
    for name in ("HTTPValidationError", "ValidationError"):
        schema["components"]["schemas"].pop(name, None)
    for methods in schema["paths"].values():
        for route in methods.values():
            if "application/json" in route["responses"].get("422", {}).get("content", {}):
                del route["responses"]["422"]
