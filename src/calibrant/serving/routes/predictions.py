"""`GET /v1/predictions/{id}`: one prediction in full."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Depends, Request

from calibrant.client.messages import PredictionAnswer
from calibrant.serving.http.problems import Problem
from calibrant.serving.recording import row_of
from calibrant.serving.routes.requests import needs, problems, service_of
from calibrant.serving.service import Service
from calibrant.serving.store_calls import within

__all__ = ["router"]

router = APIRouter(tags=["predictions"])


@router.get(
    "/v1/predictions/{id}",
    summary="Read one prediction",
    response_model=PredictionAnswer,
    responses=problems(401, 404, 429, 503),
    dependencies=[Depends(needs(None))],
)
async def prediction(request: Request, id: str) -> dict[str, Any]:
    """Return what was asked, what was decided and why, and what became of it."""
    service = service_of(request)
    found = await within(service.settings.timeout, lambda: _read(service, id))
    if found is None:
        raise Problem(
            HTTPStatus.NOT_FOUND, f"there is no prediction {id[:100]!r}; it may have been erased."
        )
    return found


def _read(service: Service, id: str) -> dict[str, Any] | None:
    found = service.store.predictions.get(id) if id.isprintable() else None
    if found is None:
        return None
    labels, outcomes = service.store.outcomes.of(id)
    classes = service.recorder.classes_of(found.bundle)
    same = ("at", "request", "position", "unit", "use_case", "branch", "input", "input_hash")
    return {
        **row_of(found, classes),
        **{name: getattr(found, name) for name in (*same, "latency_ms")},
        "bundle": {"id": found.bundle[:12], "hash": found.bundle},
        "logits": dict(zip(classes, found.logits, strict=True)),
        "labels": [
            {"id": each.id, "at": each.at, "label": each.label, "source": each.source}
            for each in labels
        ],
        "outcomes": [
            {"id": o.id, "at": o.at, "outcome": o.name, "value": o.value, "text": o.text}
            for o in outcomes
        ],
    }
