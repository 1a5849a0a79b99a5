"""`/console/try`: score one input as in serving, with reasons, without recording it."""

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
from calibrant.serving.console.pages.predictions.contributions import view_parts
from calibrant.serving.console.pages.try_it.fields import MAX_FIELDS, list_fields
from calibrant.serving.console.pages.try_it.form_input import PASTE, TryInput, read_input
from calibrant.serving.console.pages.try_it.view import result_data
from calibrant.serving.console.shell.access import Visitor, read_form, require_visitor
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.console.shell.render import render_page
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import service_of
from calibrant.serving.scoring import ScoreRequest, score

router = APIRouter(prefix="/console", include_in_schema=False)


@router.get("/try")
async def try_it(
    request: Request, visitor: Annotated[Visitor, Depends(require_visitor())]
) -> Response:
    """Show the form."""
    return _page(request, visitor, service_of(request).slot.current, TryInput({}))


@router.post("/try")
async def score_input(
    request: Request, visitor: Annotated[Visitor, Depends(require_visitor("predict"))]
) -> Response:
    """Score the input and show the form with the result."""
    service, form = service_of(request), await read_form(request, visitor)
    served = service.slot.current
    point = _read_point(form, served)
    if served.reads != "text" and form.text("bundle") != served.hash:
        return _page(
            request, visitor, served, TryInput({}), fault=_OTHER_BUNDLE, status=HTTPStatus.CONFLICT
        )
    entered = read_input(form, served, max_text=service.settings.max_text)
    answer = partial(_page, request, visitor, served, entered, point=point)
    if entered.input is None:
        return answer(status=HTTPStatus.UNPROCESSABLE_ENTITY)
    try:
        result = await _score(served, entered, point, service.settings.timeout)
    except InputError as error:
        return answer(fault=sentence(str(error)), status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return answer(result=result)


_OTHER_BUNDLE = "The bundle has been replaced since you opened this page: fill in the fields again."


async def _score(
    served: Served, entered: TryInput, point: int | None, timeout: float
) -> dict[str, Any]:
    """Score the input as a request would be, without recording it."""
    input = entered.input
    assert input is not None  # checked by the caller

    def compute() -> dict[str, Any]:
        query = ScoreRequest(
            served, [entered.row], [input], body=b"", request="", since=0.0, point=point
        )
        ((_, rows),) = score([query])
        parts = view_parts(served, entered.row, rows[0].logits, rows[0].label)
        result = result_data(served, input, rows[0], point)
        return {**result, "notes": entered.notes, "parts": parts}

    try:
        return await asyncio.wait_for(asyncio.to_thread(compute), timeout)
    except TimeoutError:
        raise Problem.busy(f"the model did not answer within {timeout:g} s: try again.") from None


def _read_point(form: Form, served: Served) -> int | None:
    positions = [str(i) for i in range(len(served.bundle.points))]
    position = form.choice("point", positions)
    return None if position is None else int(position)


def _page(
    request: Request,
    visitor: Visitor,
    served: Served,
    entered: TryInput,
    *,
    point: int | None = None,
    result: dict[str, Any] | None = None,
    fault: str | None = None,
    status: int = HTTPStatus.OK,
) -> Response:
    fields = list_fields(served)
    alternatives = any(map(served.bundle.is_alternative, range(len(served.bundle.points))))
    return render_page(
        request,
        visitor,
        "try_it.html.j2",
        status=status,
        shown=served,
        fields=fields if len(fields) <= MAX_FIELDS else (),
        columns=fields,
        many=len(fields) > MAX_FIELDS,
        typed=entered.values,
        faults=entered.faults,
        paste=PASTE,
        fault=fault,
        choices=point_data(served.bundle) if alternatives else [],
        point=point,
        result=result,
        max_text=service_of(request).settings.max_text,
        allowed=visitor.may("predict"),
    )
