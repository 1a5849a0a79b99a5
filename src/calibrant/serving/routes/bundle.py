"""`/v1/bundle`: describe and reload the bundle."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from fastapi import APIRouter, Depends, Request

from calibrant.bundle.reasons import why_unexplained
from calibrant.client.messages import BundleAnswer, RuleAnswer
from calibrant.errors import CalibrantError
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import describe_problems, require_role, service_of
from calibrant.serving.service import Service

router = APIRouter(prefix="/v1/bundle", tags=["bundle"])


@router.get(
    "",
    summary="Describe the bundle",
    response_model=BundleAnswer,
    responses=describe_problems(401, 429, 503),
    dependencies=[Depends(require_role(None))],
)
async def describe_bundle(request: Request) -> BundleAnswer:
    """Return the served bundle: its inputs, classes and promises."""
    return _to_message(service_of(request))


@router.post(
    "/reload",
    summary="Reload the bundle",
    response_model=BundleAnswer,
    responses=describe_problems(401, 403, 409, 429, 503),
    dependencies=[Depends(require_role("admin"))],
)
async def reload(request: Request) -> BundleAnswer:
    """Reload the folder; if it is invalid, the loaded bundle stays."""
    service = service_of(request)
    try:
        await asyncio.to_thread(service.reload)
    except CalibrantError as error:  # including a missing package
        raise Problem(
            HTTPStatus.CONFLICT, f"the folder was refused, and the old bundle stays: {error}"
        ) from None
    return _to_message(service)


def _to_message(service: Service) -> BundleAnswer:
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
        rules=[RuleAnswer(**rule.to_dict()) for rule in bundle.decision_rules],
        actions=dict(bundle.actions),
        gives_reasons=why_unexplained(bundle.scorer) is None,
        loaded_at=served.loaded_at,
        refused=service.slot.refused,
    )
