"""`/console/predictions`: the list of predictions and the page of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from calibrant.serving.console.pages.predictions.detail import (
    PredictionView,
    load_view,
    prediction_url,
)
from calibrant.serving.console.pages.predictions.filters import FilterInput, read_filters
from calibrant.serving.console.pages.predictions.listing import (
    PredictionPage,
    find_prediction_id,
    list_predictions,
)
from calibrant.serving.console.pages.predictions.outcome_form import (
    OTHER,
    OutcomeForm,
    read_outcome_form,
    record_outcome_form,
)
from calibrant.serving.console.pages.predictions.wording import DECISION_WORDS, make_visible
from calibrant.serving.console.shell.access import Visitor, read_form, require_visitor
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.console.shell.render import redirect_to, render_page
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import service_of
from calibrant.serving.service import Service
from calibrant.serving.store_calls import within
from calibrant.store import BundleRecord, Recorded, new_id

router = APIRouter(prefix="/console", include_in_schema=False)

_CONFIRMATIONS = {
    "label": "Label recorded.",
    "outcome": "Outcome recorded.",
}
_SENT_BEFORE = (
    "this form was already sent with different content, which is recorded: reload the page of the "
    "prediction to enter something else; nothing was changed now."
)


@dataclass(frozen=True)
class _ListData:
    """Data of the list page; `listed` is None if a filter is invalid."""

    query: FilterInput
    bundles: list[BundleRecord]
    classes: list[str]
    listed: PredictionPage | None = None
    match: str | None = None


@router.get("/predictions")
async def predictions(
    request: Request, visitor: Annotated[Visitor, Depends(require_visitor())]
) -> Response:
    """Show the newest predictions, or those that match the filters."""
    service = service_of(request)
    fields = Form.from_query(request).fields
    shown = await within(service.settings.timeout, lambda: _list_data(service, fields))
    if shown.match is not None:
        return redirect_to(prediction_url(shown.match))
    status = HTTPStatus.OK
    if shown.listed is None:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    elif shown.listed.gone:
        status = HTTPStatus.NOT_FOUND
    return render_page(
        request,
        visitor,
        "predictions.html.j2",
        status=status,
        shown=shown,
        decisions=DECISION_WORDS,
    )


@router.get("/predictions/{id}")
async def prediction(
    request: Request, id: str, visitor: Annotated[Visitor, Depends(require_visitor())]
) -> Response:
    """Show one prediction in full."""
    done = _CONFIRMATIONS.get(Form.from_query(request).fields.get("done", ""))
    view = await _view(request, id)
    return (
        _not_found(request, visitor, id)
        if view is None
        else _page(request, visitor, view, done=done)
    )


@router.post("/predictions/{id}")
async def record(
    request: Request, id: str, visitor: Annotated[Visitor, Depends(require_visitor("label"))]
) -> Response:
    """Record the label or an outcome of a prediction."""
    form = await read_form(request, visitor)
    view = await _view(request, id)
    if view is None:
        return _not_found(request, visitor, id)
    entry = read_outcome_form(form.fields, id, view.bundle.classes)
    if entry.errors:
        return _page(request, visitor, view, entry=entry)
    result = await _record(request, entry, visitor)
    if result.unknown:  # erased since the page was rendered
        return _not_found(request, visitor, id)
    if result.conflict:
        raise Problem(HTTPStatus.CONFLICT, _SENT_BEFORE)
    return redirect_to(f"{prediction_url(id)}?done={entry.kind}#feedback")


def _list_data(service: Service, fields: Mapping[str, str]) -> _ListData:
    store = service.store
    bundles = store.bundles.all(manifests=False)
    classes = list(dict.fromkeys(name for each in reversed(bundles) for name in each.classes))
    query = read_filters(fields, bundles)
    if query.errors:
        return _ListData(query, bundles, classes)
    match = find_prediction_id(store, query.filters)
    if match is not None:
        return _ListData(query, bundles, classes, match=match)
    listed = list_predictions(store, query.filters, service.recorder.scores)
    return _ListData(query, bundles, classes, listed)


async def _view(request: Request, id: str) -> PredictionView | None:
    service = service_of(request)
    served, settings = service.slot.current, service.settings
    return await within(
        settings.timeout,
        lambda: load_view(service.store, id, served, max_text=settings.max_text),
    )


async def _record(request: Request, entry: OutcomeForm, visitor: Visitor) -> Recorded:
    service = service_of(request)
    key = None if visitor.key is None else visitor.key.id
    return await within(
        service.settings.timeout, lambda: record_outcome_form(service.store, entry, key)
    )


def _page(
    request: Request,
    visitor: Visitor,
    view: PredictionView,
    *,
    entry: OutcomeForm | None = None,
    done: str | None = None,
) -> Response:
    """Return the page of a prediction; `entry` is a form that could not be recorded."""
    return render_page(
        request,
        visitor,
        "prediction.html.j2",
        status=HTTPStatus.OK if entry is None else HTTPStatus.UNPROCESSABLE_ENTITY,
        view=view,
        forms={kind: _form(kind, entry) for kind in ("label", "outcome")},
        other=OTHER,
        done=done,
        visible=make_visible,
        policy=service_of(request).settings.inputs,
    )


def _form(kind: str, entry: OutcomeForm | None) -> OutcomeForm:
    """Return the form as it was filled in, or an empty one with a new id."""
    return entry if entry is not None and entry.kind == kind else OutcomeForm(kind, once=new_id())


def _not_found(request: Request, visitor: Visitor, id: str) -> Response:
    sent = request.method == "POST"
    return render_page(
        request,
        visitor,
        "prediction_missing.html.j2",
        status=HTTPStatus.NOT_FOUND,
        id=id,
        sent=sent,
    )
