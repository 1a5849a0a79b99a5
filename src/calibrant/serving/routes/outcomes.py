"""`POST /v1/outcomes`: what became of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request

from calibrant.client.messages import OutcomesAnswer, OutcomesBody
from calibrant.errors import UnknownClass
from calibrant.serving.http.bodies import idempotency_key, read_body, understood
from calibrant.serving.http.problems import Problem
from calibrant.serving.recording import OTHER_BODY
from calibrant.serving.routes.requests import body_of, needs, problems, service_of
from calibrant.serving.store_calls import within
from calibrant.store import Key, Label, Outcome, Recorded
from calibrant.store.records import new_id

__all__ = ["router"]

router = APIRouter(tags=["outcomes"])


@router.post(
    "/v1/outcomes",
    summary="Record labels and outcomes",
    response_model=OutcomesAnswer,
    responses=problems(400, 401, 403, 404, 409, 413, 415, 422, 429, 503),
    openapi_extra=body_of(OutcomesBody, retried=True),
)
async def outcomes(
    request: Request,
    key: Annotated[Key | None, Depends(needs("label"))],
) -> OutcomesAnswer:
    """Record the true class of predictions, or what happened after them, all or none.

    Sent again with the same `Idempotency-Key`, nothing is recorded twice.
    """
    service = service_of(request)
    retry = idempotency_key(request.headers)
    body = await read_body(request.headers, request.receive, service.settings.max_body)
    asked = understood(body, OutcomesBody)
    if len(asked.outcomes) > service.settings.max_inputs:
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"{len(asked.outcomes):,} outcomes are too many, at most "
            f"{service.settings.max_inputs:,} are taken at a time: send several requests.",
        )
    own = None if key is None else key.id
    ids = [_id(own, retry, i) for i in range(len(asked.outcomes))]
    labels, found = _records(asked, ids, own)
    other = {id for id, each in zip(ids, asked.outcomes, strict=True) if each.other}

    def add() -> Recorded:
        telling: dict[str, str] = {}
        if retry is not None:
            hashed = service.store.keyed_hash(body)
            telling = {"request": f"{own or ''}:{retry}", "hash": hashed}
        return service.store.outcomes.add(found, labels, other=other, **telling)

    try:
        done = await within(service.settings.timeout, add)
    except UnknownClass as error:
        raise _no_class(error, ids.index(error.id)) from None
    if done.unknown:
        raise Problem(
            HTTPStatus.NOT_FOUND,
            f"there is no prediction {done.unknown[0]!r}, or it was erased: nothing was recorded "
            "now.",
        )
    if done.conflict:
        raise Problem(HTTPStatus.CONFLICT, OTHER_BODY)
    return OutcomesAnswer(added=done.added, repeated=done.repeated)


def _id(key: str | None, retry: str | None, place: int) -> str:
    """Return the id of what an entry tells; with an idempotency key it is that of a first try."""
    return new_id() if retry is None else f"{key or ''}:{retry}:{place}"


def _records(
    asked: OutcomesBody, ids: Sequence[str], key: str | None
) -> tuple[list[Label], list[Outcome]]:
    """Return what is to be written."""
    at = datetime.now(UTC)
    labels, outcomes = [], []
    for own, each in zip(ids, asked.outcomes, strict=True):
        if each.label is not None:
            labels.append(Label(own, at, each.prediction, each.label, each.source, key))
        if each.outcome is not None:
            outcomes.append(
                Outcome(own, at, each.prediction, each.outcome, each.value, each.text, key)
            )
    return labels, outcomes


def _no_class(error: UnknownClass, place: int) -> Problem:
    """Return the problem of a label that is no class, with its place in the body."""
    where = f"outcomes[{place}].label"
    said = f'{error.finding}: correct it, or send "other": true with it'
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        f"{where}: {said}; nothing was recorded.",
        errors=[{"where": where, "message": said}],
    )
