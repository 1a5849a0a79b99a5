"""Whether the service lives, whether it can answer, and its figures."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from calibrant.errors import StoreError
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import needs, problems, service_of

__all__ = ["router"]

router = APIRouter(tags=["health"])


@router.get("/healthz", summary="Is the process alive?")
async def healthz() -> dict[str, str]:
    """Answer as long as the process can."""
    return {"status": "alive"}


@router.head("/healthz", include_in_schema=False)
async def healthz_head() -> Response:
    """Answer without a body: some load balancers ask so."""
    return Response()


@router.get("/readyz", summary="Can it serve?", responses=problems(503))
async def readyz(request: Request) -> dict[str, str]:
    """Answer 200 where requests can be answered: the database is there and nothing stops.

    Nobody needs a key to ask, so the answer does not say where the database is.
    """
    service = service_of(request)
    if service.draining or service.readiness.leaving:
        raise Problem.busy("the service is stopping.")
    try:
        await service.readiness.check()
    except StoreError:
        raise Problem.busy("the database cannot be used: see the log.") from None
    return {"status": "ready", "bundle": service.slot.current.id}


@router.head("/readyz", include_in_schema=False)
async def readyz_head(request: Request) -> Response:
    """Answer as `readyz` does, without a body."""
    await readyz(request)
    return Response()


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **problems(401, 429, 503)},
    dependencies=[Depends(needs(None))],
)
async def metrics(request: Request) -> Response:
    """Return requests, latencies, decisions, scores and the depth of the queue."""
    found = service_of(request).metrics
    text = await asyncio.to_thread(found.text)  # of many processes and labels it takes a while
    return Response(text, media_type=found.content_type)
