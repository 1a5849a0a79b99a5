"""`/v1/units`: erase all that is on record of a unit."""

from __future__ import annotations

import asyncio
import logging
import re
from http import HTTPStatus

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field

from calibrant.client.messages import ErasedAnswer, Name
from calibrant.errors import StoreUnavailable, StoreUnfit
from calibrant.serving.http.bodies import read_body, understood
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import body_of, needs, problems, service_of
from calibrant.serving.service import Service

__all__ = ["EraseBody", "router"]

router = APIRouter(tags=["units"])

_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
"""As `PredictBody` takes a unit: what is no such name cannot be on record."""

_HALF_DONE = "the rows are deleted, but"
"""How the store begins to say that only its file is left to be cleaned."""

_NOT_DONE = (
    "the database cannot be written, so nothing was erased: try again, and where its disk is full "
    "make room on it first."
)
_log = logging.getLogger("calibrant.serving")


class EraseBody(BaseModel):
    """Whom to forget."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"unit": "customer-17"}}
    )

    unit: Name = Field(description="As requests named it.")


@router.post(
    "/v1/units/erase",
    summary="Erase a unit",
    response_model=ErasedAnswer,
    responses=problems(400, 401, 403, 413, 415, 422, 429, 503),
    openapi_extra=body_of(EraseBody),
    dependencies=[Depends(needs("admin"))],
)
async def erase(request: Request) -> ErasedAnswer:
    """Erase all predictions, labels and outcomes of a unit; a unit without any is no fault.

    The unit is named in the body, for addresses end up in the logs of proxies.
    """
    service = service_of(request)
    body = await read_body(request.headers, request.receive, service.settings.max_body)
    return await _erased(service, understood(body, EraseBody).unit)


@router.delete(
    "/v1/units/{unit:path}",  # a unit may have slashes
    summary="Erase a unit that the address names",
    response_model=ErasedAnswer,
    responses=problems(401, 403, 404, 429, 503),
    dependencies=[Depends(needs("admin"))],
)
async def delete(request: Request, unit: str) -> ErasedAnswer:
    """Erase a unit as `POST /v1/units/erase` does, where its name may be seen on the way."""
    if not _NAME.fullmatch(unit):
        raise Problem(
            HTTPStatus.NOT_FOUND,
            "a unit has 1 to 200 characters, none of them a control character: nothing is erased.",
        )
    return await _erased(service_of(request), unit)


async def _erased(service: Service, unit: str) -> ErasedAnswer:
    """Erase one unit at a time: each may write the whole file anew."""
    async with service.erasing:
        try:
            done = await asyncio.to_thread(service.store.forget, unit)
        except (StoreUnavailable, StoreUnfit) as error:
            if str(error).startswith(_HALF_DONE):
                raise Problem.busy(str(error)) from None
            _log.warning("%s", error)
            raise Problem.busy(_NOT_DONE) from None
    return ErasedAnswer(predictions=done.predictions, labels=done.labels, outcomes=done.outcomes)
