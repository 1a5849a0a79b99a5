"""`/v1/units`: erase all records of a unit."""

from __future__ import annotations

import asyncio
import logging
import re
from http import HTTPStatus

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field

from calibrant.client.messages import ErasedAnswer, Name
from calibrant.errors import StoreUnavailable, StoreUnfit
from calibrant.serving.http.bodies import parse_body, read_body
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import (
    describe_body,
    describe_problems,
    require_role,
    service_of,
)
from calibrant.serving.service import Service

router = APIRouter(tags=["units"])

_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
"""Valid unit names, as in `PredictBody`; others cannot be recorded."""

_HALF_DONE = "the rows are deleted, but"
"""Start of the store's message when the rows are deleted but its file is not cleaned."""

_NOT_DONE = (
    "the database cannot be written, so nothing was erased: try again; if its disk is full, free "
    "some space first."
)
_log = logging.getLogger("calibrant.serving")


class EraseBody(BaseModel):
    """The unit to erase."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"unit": "customer-17"}}
    )

    unit: Name = Field(description="The unit, as sent in requests.")


@router.post(
    "/v1/units/erase",
    summary="Erase a unit",
    response_model=ErasedAnswer,
    responses=describe_problems(400, 401, 403, 413, 415, 422, 429, 503),
    openapi_extra=describe_body(EraseBody),
    dependencies=[Depends(require_role("admin"))],
)
async def erase(request: Request) -> ErasedAnswer:
    """Erase all predictions, labels and outcomes of a unit; an unknown unit is not an error.

    The unit is sent in the body, because proxies log URLs.
    """
    service = service_of(request)
    body = await read_body(request.headers, request.receive, service.settings.max_body)
    return await _erase_unit(service, parse_body(body, EraseBody).unit)


@router.delete(
    "/v1/units/{unit:path}",  # a unit may have slashes
    summary="Erase a unit named in the URL",
    response_model=ErasedAnswer,
    responses=describe_problems(401, 403, 404, 429, 503),
    dependencies=[Depends(require_role("admin"))],
)
async def delete(request: Request, unit: str) -> ErasedAnswer:
    """Erase a unit like `POST /v1/units/erase`; its name is visible in the URL."""
    if not _NAME.fullmatch(unit):
        raise Problem(
            HTTPStatus.NOT_FOUND,
            "a unit has 1 to 200 characters without control characters: nothing was erased.",
        )
    return await _erase_unit(service_of(request), unit)


async def _erase_unit(service: Service, unit: str) -> ErasedAnswer:
    """Erase a unit; one at a time, since each may rewrite the whole database file."""
    async with service.erase_lock:
        try:
            done = await asyncio.to_thread(service.store.forget, unit)
        except (StoreUnavailable, StoreUnfit) as error:
            if str(error).startswith(_HALF_DONE):
                raise Problem.busy(str(error)) from None
            _log.warning("%s", error)
            raise Problem.busy(_NOT_DONE) from None
    return ErasedAnswer(predictions=done.predictions, labels=done.labels, outcomes=done.outcomes)
