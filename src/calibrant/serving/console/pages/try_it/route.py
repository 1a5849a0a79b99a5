"""`/console/try`: one input scored as in serving, with the reasons, and not recorded."""

from __future__ import annotations

import asyncio
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from calibrant.errors import InputError
from calibrant.formatting import sentence
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.model.points import point_data
from calibrant.serving.console.pages.try_it.fields import MOST_FIELDS, fields_of
from calibrant.serving.console.pages.try_it.form_input import PASTE, Typed, read_typed
from calibrant.serving.console.pages.try_it.view import result_data
from calibrant.serving.console.shell.access import Visitor, sent_form, visitor
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.console.shell.render import page
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import service_of
from calibrant.serving.scoring import ScoreRequest, score

__all__ = ["router"]

router = APIRouter(prefix="/console", include_in_schema=False)


@router.get("/try")
async def try_it(request: Request, looking: Annotated[Visitor, Depends(visitor())]) -> Response:
    """Show the form."""
    return _page(request, looking, service_of(request).slot.current, Typed({}))


@router.post("/try")
async def tried(
    request: Request, looking: Annotated[Visitor, Depends(visitor("predict"))]
) -> Response:
    """Show the form again, with what the bundle says about the input."""
    service, form = service_of(request), await sent_form(request, looking)
    served = service.slot.current
    point = _point(form, served)
    if served.reads != "text" and form.text("bundle") != served.hash:
        return _page(request, looking, served, Typed({}), fault=_OTHER, status=HTTPStatus.CONFLICT)
    typed = read_typed(form, served, max_text=service.settings.max_text)
    answer = partial(_page, request, looking, served, typed, point=point)
    if typed.input is None:
        return answer(status=HTTPStatus.UNPROCESSABLE_ENTITY)
    try:
        found = await _scored(served, typed, point, service.settings.timeout)
    except InputError as error:
        return answer(fault=sentence(str(error)), status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return answer(result=found)


_OTHER = (
    "Another bundle serves by now, and what you typed was for the one before: fill in the fields "
    "again."
)


async def _scored(
    served: Served, typed: Typed, point: int | None, seconds: float
) -> dict[str, Any]:
    """Score what was typed as a request would be, but off the record."""
    given = typed.input
    assert given is not None  # it was checked

    def scored() -> dict[str, Any]:
        asked = ScoreRequest(
            served, [typed.row], [given], body=b"", request="", since=0.0, point=point
        )
        ((_, rows),) = score([asked])
        return {**result_data(served, given, rows[0], point), "notes": typed.notes}

    try:
        return await asyncio.wait_for(asyncio.to_thread(scored), seconds)
    except TimeoutError:
        raise Problem.busy(f"the model did not answer within {seconds:g} s: try again.") from None


def _point(form: Form, served: Served) -> int | None:
    places = [str(place) for place in range(len(served.bundle.points))]
    found = form.choice("point", places)
    return None if found is None else int(found)


def _page(
    request: Request,
    looking: Visitor,
    served: Served,
    typed: Typed,
    *,
    point: int | None = None,
    result: dict[str, Any] | None = None,
    fault: str | None = None,
    status: int = HTTPStatus.OK,
) -> Response:
    fields = fields_of(served)
    alternatives = any(map(served.bundle.is_alternative, range(len(served.bundle.points))))
    return page(
        request,
        looking,
        "try_it.html.j2",
        status=status,
        shown=served,
        fields=fields if len(fields) <= MOST_FIELDS else (),
        columns=fields,
        many=len(fields) > MOST_FIELDS,
        typed=typed.values,
        faults=typed.faults,
        paste=PASTE,
        fault=fault,
        choices=point_data(served.bundle) if alternatives else [],
        point=point,
        result=result,
        max_text=service_of(request).settings.max_text,
        allowed=looking.may("predict"),
    )
