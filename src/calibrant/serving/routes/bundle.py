"""`/v1/bundle`: which bundle serves, and having it loaded again."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from fastapi import APIRouter, Depends, Request

from calibrant.client.messages import BundleAnswer
from calibrant.errors import CalibrantError
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import needs, problems, service_of
from calibrant.serving.service import Service

__all__ = ["router"]

router = APIRouter(prefix="/v1/bundle", tags=["bundle"])


@router.get(
    "",
    summary="Describe the bundle",
    response_model=BundleAnswer,
    responses=problems(401, 429, 503),
    dependencies=[Depends(needs(None))],
)
async def described(request: Request) -> BundleAnswer:
    """Return the bundle that serves: what it reads, its classes and what it promises."""
    return _answer(service_of(request))


@router.post(
    "/reload",
    summary="Load the bundle again",
    response_model=BundleAnswer,
    responses=problems(401, 403, 409, 429, 503),
    dependencies=[Depends(needs("admin"))],
)
async def reload(request: Request) -> BundleAnswer:
    """Load the folder again; where it is damaged, the bundle in memory goes on."""
    service = service_of(request)
    try:
        await asyncio.to_thread(service.reload)
    except CalibrantError as error:  # also one that needs a package that is not installed
        raise Problem(
            HTTPStatus.CONFLICT, f"the folder was refused, and the old bundle goes on: {error}"
        ) from None
    return _answer(service)


def _answer(service: Service) -> BundleAnswer:
    served = service.slot.current
    bundle = served.bundle
    return BundleAnswer(
        id=served.id,
        hash=served.hash,
        name=served.name,
        classes=list(served.classes),
        input=served.reads,  # type: ignore[arg-type]  # images are not served
        columns=bundle.columns.to_dict(),
        points=[list(point.promises) for point in bundle.points],
        actions=dict(bundle.actions),
        loaded_at=served.loaded_at,
        refused=service.slot.refused,
    )
