"""Liveness, readiness and Prometheus metrics."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from calibrant.errors import StoreError
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import describe_problems, require_role, service_of

router = APIRouter(tags=["health"])


@router.get("/healthz", summary="Is the process alive?")
async def healthz() -> dict[str, str]:
    """Return 200 while the process is alive."""
    return {"status": "alive"}


@router.head("/healthz", include_in_schema=False)
async def healthz_head() -> Response:
    """Answer HEAD, which some load balancers send."""
    return Response()


@router.get("/readyz", summary="Can it serve?", responses=describe_problems(503))
async def readyz(request: Request) -> dict[str, str]:
    """Return 200 if requests can be answered: the database is usable and nothing is stopping.

    No key is required, so the response does not reveal the database.
    """
    service = service_of(request)
    if service.draining or service.readiness.leaving:
        raise Problem.busy("the service is stopping.")
    try:
        await service.readiness.check()
    except StoreError:
        raise Problem.busy("the database is not usable: see the log.") from None
    return {"status": "ready", "bundle": service.slot.current.id}


@router.head("/readyz", include_in_schema=False)
async def readyz_head(request: Request) -> Response:
    """Answer HEAD like `readyz`."""
    await readyz(request)
    return Response()


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **describe_problems(401, 429, 503)},
    dependencies=[Depends(require_role(None))],
)
async def metrics(request: Request) -> Response:
    """Return metrics of requests, latencies, decisions, scores and the queue."""
    registry = service_of(request).metrics
    text = await asyncio.to_thread(registry.text)  # slow with many processes and labels
    return Response(text, media_type=registry.content_type)
