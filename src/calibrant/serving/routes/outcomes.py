"""`POST /v1/outcomes`: what became of predictions."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request

from calibrant.serving.bodies import idempotency_key, read_body, understood
from calibrant.serving.messages import OutcomesAnswer, OutcomesBody
from calibrant.serving.problems import Problem
from calibrant.serving.recording import OTHER_BODY
from calibrant.serving.routes.requests import body_of, needs, problems, service_of
from calibrant.serving.waiting import within
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
    labels, found = _records(asked, own, retry)

    def add() -> Recorded:
        if retry is None:
            return service.store.outcomes.add(found, labels)
        request, hashed = f"{own or ''}:{retry}", service.store.keyed_hash(body)
        return service.store.outcomes.add(found, labels, request=request, hash=hashed)

    done = await within(service.settings.timeout, add)
    if done.unknown:
        raise Problem(
            HTTPStatus.NOT_FOUND,
            f"there is no prediction {done.unknown[0]!r}: nothing was recorded.",
        )
    if done.conflict:
        raise Problem(HTTPStatus.CONFLICT, OTHER_BODY)
    return OutcomesAnswer(added=done.added, repeated=done.repeated)


def _records(
    asked: OutcomesBody, key: str | None, retry: str | None
) -> tuple[list[Label], list[Outcome]]:
    """Return what is to be written; with an idempotency key the ids are those of a first try."""
    at = datetime.now(UTC)
    labels, outcomes = [], []
    for i, each in enumerate(asked.outcomes):
        own = new_id() if retry is None else f"{key or ''}:{retry}:{i}"
        if each.label is not None:
            labels.append(Label(own, at, each.prediction, each.label, each.source, key))
        if each.outcome is not None:
            outcomes.append(
                Outcome(own, at, each.prediction, each.outcome, each.value, each.text, key)
            )
    return labels, outcomes
