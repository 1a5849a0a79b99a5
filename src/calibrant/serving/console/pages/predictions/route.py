"""`/console/predictions`: the list of predictions, and each of them in full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from calibrant.serving.console.pages.predictions.detail import PredictionView, address_of, view_of
from calibrant.serving.console.pages.predictions.filters import Typed, read_filters
from calibrant.serving.console.pages.predictions.listing import Listed, found_by, list_predictions
from calibrant.serving.console.pages.predictions.outcome_form import (
    OTHER,
    Telling,
    read_telling,
    record_telling,
)
from calibrant.serving.console.pages.predictions.wording import DECISION_WORDS, visible
from calibrant.serving.console.shell.access import Visitor, sent_form, visitor
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.console.shell.render import go_to, page
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import service_of
from calibrant.serving.store_calls import within
from calibrant.store import BundleRecord, Recorded, Store, new_id

__all__ = ["router"]

router = APIRouter(prefix="/console", include_in_schema=False)

_DONE = {
    "label": "The true class is on record.",
    "outcome": "The outcome is on record.",
}
_SENT_BEFORE = (
    "this form was sent before with another content, and that is on record: load the page of the "
    "prediction again to tell something else; nothing was changed now."
)


@dataclass(frozen=True)
class _List:
    """What the list's page shows; `listed` is None where the filters are wrong."""

    asked: Typed
    bundles: list[BundleRecord]
    classes: list[str]
    listed: Listed | None = None
    found: str | None = None


@router.get("/predictions")
async def predictions(request: Request, seen: Annotated[Visitor, Depends(visitor())]) -> Response:
    """Show the newest predictions, or those that meet the filters."""
    service = service_of(request)
    fields = Form.of_query(request).fields
    shown = await within(service.settings.timeout, lambda: _listed(service.store, fields))
    if shown.found is not None:
        return go_to(address_of(shown.found))
    status = HTTPStatus.OK
    if shown.listed is None:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    elif shown.listed.gone:
        status = HTTPStatus.NOT_FOUND
    return page(
        request, seen, "predictions.html.j2", status=status, shown=shown, decisions=DECISION_WORDS
    )


@router.get("/predictions/{id}")
async def prediction(
    request: Request, id: str, seen: Annotated[Visitor, Depends(visitor())]
) -> Response:
    """Show one prediction in full."""
    done = _DONE.get(Form.of_query(request).fields.get("done", ""))
    view = await _view(request, id)
    return _missing(request, seen, id) if view is None else _page(request, seen, view, done=done)


@router.post("/predictions/{id}")
async def tell(
    request: Request, id: str, seen: Annotated[Visitor, Depends(visitor("label"))]
) -> Response:
    """Record the true class of a prediction, or what came of it."""
    form = await sent_form(request, seen)
    view = await _view(request, id)
    if view is None:
        return _missing(request, seen, id)
    told = read_telling(form.fields, id, view.bundle.classes)
    if told.errors:
        return _page(request, seen, view, told=told)
    done = await _recorded(request, told, seen)
    if done.unknown:  # erased since the page was made
        return _missing(request, seen, id)
    if done.conflict:
        raise Problem(HTTPStatus.CONFLICT, _SENT_BEFORE)
    return go_to(f"{address_of(id)}?done={told.kind}#told")


def _listed(store: Store, fields: Mapping[str, str]) -> _List:
    bundles = store.bundles.all(manifests=False)
    classes = list(dict.fromkeys(name for each in reversed(bundles) for name in each.classes))
    asked = read_filters(fields, bundles)
    if asked.errors:
        return _List(asked, bundles, classes)
    found = found_by(store, asked.filters)
    if found is not None:
        return _List(asked, bundles, classes, found=found)
    return _List(asked, bundles, classes, list_predictions(store, asked.filters))


async def _view(request: Request, id: str) -> PredictionView | None:
    service = service_of(request)
    return await within(service.settings.timeout, lambda: view_of(service.store, id))


async def _recorded(request: Request, told: Telling, seen: Visitor) -> Recorded:
    service = service_of(request)
    key = None if seen.key is None else seen.key.id
    return await within(service.settings.timeout, lambda: record_telling(service.store, told, key))


def _page(
    request: Request,
    seen: Visitor,
    view: PredictionView,
    *,
    told: Telling | None = None,
    done: str | None = None,
) -> Response:
    """Return the page of a prediction; `told` is what was sent and cannot be recorded."""
    return page(
        request,
        seen,
        "prediction.html.j2",
        status=HTTPStatus.OK if told is None else HTTPStatus.UNPROCESSABLE_ENTITY,
        view=view,
        forms={kind: _form(kind, told) for kind in ("label", "outcome")},
        other=OTHER,
        done=done,
        visible=visible,
        policy=service_of(request).settings.inputs,
    )


def _form(kind: str, told: Telling | None) -> Telling:
    """Return a form with what was typed, or an empty one with an id of its own."""
    return told if told is not None and told.kind == kind else Telling(kind, once=new_id())


def _missing(request: Request, seen: Visitor, id: str) -> Response:
    sent = request.method == "POST"
    return page(
        request, seen, "prediction_missing.html.j2", status=HTTPStatus.NOT_FOUND, id=id, sent=sent
    )
