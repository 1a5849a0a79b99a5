"""`POST /v1/outcomes`: record labels and outcomes of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request

from calibrant.client.messages import OutcomesAnswer, OutcomesBody
from calibrant.errors import UnknownClass
from calibrant.serving.http.bodies import parse_body, read_body, read_idempotency_key
from calibrant.serving.http.problems import Problem
from calibrant.serving.recording import OTHER_BODY
from calibrant.serving.routes.requests import (
    describe_body,
    describe_problems,
    require_role,
    service_of,
)
from calibrant.serving.store_calls import within
from calibrant.store import Key, Label, Outcome, Recorded
from calibrant.store.records import new_id

router = APIRouter(tags=["outcomes"])


@router.post(
    "/v1/outcomes",
    summary="Record labels and outcomes",
    response_model=OutcomesAnswer,
    responses=describe_problems(400, 401, 403, 404, 409, 413, 415, 422, 429, 503),
    openapi_extra=describe_body(OutcomesBody, retried=True),
)
async def outcomes(
    request: Request,
    key: Annotated[Key | None, Depends(require_role("label"))],
) -> OutcomesAnswer:
    """Record true classes and outcomes of predictions, all or none.

    A request repeated with the same `Idempotency-Key` is recorded once.
    """
    service = service_of(request)
    retry = read_idempotency_key(request.headers)
    body = await read_body(request.headers, request.receive, service.settings.max_body)
    message = parse_body(body, OutcomesBody)
    if len(message.outcomes) > service.settings.max_inputs:
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"{len(message.outcomes):,} outcomes exceed the limit of "
            f"{service.settings.max_inputs:,} per request: send several requests.",
        )
    key_id = None if key is None else key.id
    ids = [_record_id(key_id, retry, i) for i in range(len(message.outcomes))]
    labels, entries = _to_records(message, ids, key_id)
    other = {id for id, each in zip(ids, message.outcomes, strict=True) if each.other}

    def add() -> Recorded:
        identity: dict[str, str] = {}
        if retry is not None:
            hashed = service.store.keyed_hash(body)
            identity = {"request": f"{key_id or ''}:{retry}", "hash": hashed}
        return service.store.outcomes.add(entries, labels, other=other, **identity)

    try:
        done = await within(service.settings.timeout, add)
    except UnknownClass as error:
        raise _unknown_class(error, ids.index(error.id)) from None
    if done.unknown:
        raise Problem(
            HTTPStatus.NOT_FOUND,
            f"prediction {done.unknown[0]!r} does not exist or was erased: nothing was recorded.",
        )
    if done.conflict:
        raise Problem(HTTPStatus.CONFLICT, OTHER_BODY)
    return OutcomesAnswer(added=done.added, repeated=done.repeated)


def _record_id(key: str | None, retry: str | None, index: int) -> str:
    """Return the id of an entry; with an idempotency key it is the same for a retry."""
    return new_id() if retry is None else f"{key or ''}:{retry}:{index}"


def _to_records(
    message: OutcomesBody, ids: Sequence[str], key: str | None
) -> tuple[list[Label], list[Outcome]]:
    """Convert a request to store records."""
    at = datetime.now(UTC)
    labels, outcomes = [], []
    for id, each in zip(ids, message.outcomes, strict=True):
        if each.label is not None:
            labels.append(Label(id, at, each.prediction, each.label, each.source, key))
        if each.outcome is not None:
            outcomes.append(
                Outcome(id, at, each.prediction, each.outcome, each.value, each.text, key)
            )
    return labels, outcomes


def _unknown_class(error: UnknownClass, index: int) -> Problem:
    """Return the problem of a label that is not a class, with its location."""
    where = f"outcomes[{index}].label"
    message = f'{error.finding}: correct it, or send "other": true with it'
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        f"{where}: {message}; nothing was recorded.",
        errors=[{"where": where, "message": message}],
    )
