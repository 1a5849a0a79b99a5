"""`GET /v1/predictions/{id}`: read a stored prediction."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Depends, Request

from calibrant.client.messages import PredictionAnswer
from calibrant.serving.http.problems import Problem
from calibrant.serving.recording import prediction_to_row
from calibrant.serving.routes.requests import describe_problems, require_role, service_of
from calibrant.serving.service import Service
from calibrant.serving.store_calls import within

router = APIRouter(tags=["predictions"])


@router.get(
    "/v1/predictions/{id}",
    summary="Read one prediction",
    response_model=PredictionAnswer,
    responses=describe_problems(401, 404, 429, 503),
    dependencies=[Depends(require_role(None))],
)
async def prediction(request: Request, id: str) -> dict[str, Any]:
    """Return the input, scores, decision, labels and outcomes of a prediction."""
    service = service_of(request)
    content = await within(service.settings.timeout, lambda: _read_prediction(service, id))
    if content is None:
        raise Problem(
            HTTPStatus.NOT_FOUND, f"prediction {id[:100]!r} does not exist or was erased."
        )
    return content


def _read_prediction(service: Service, id: str) -> dict[str, Any] | None:
    stored = service.store.predictions.get(id) if id.isprintable() else None
    if stored is None:
        return None
    labels, outcomes = service.store.outcomes.of(id)
    classes = service.recorder.classes_of(stored.bundle)
    names = ("at", "request", "position", "unit", "use_case", "branch", "input", "input_hash")
    return {
        **prediction_to_row(stored, classes, service.recorder.scores.of([stored])[0]),
        **{name: getattr(stored, name) for name in (*names, "latency_ms")},
        "bundle": {"id": stored.bundle[:12], "hash": stored.bundle},
        "logits": dict(zip(classes, stored.logits, strict=True)),
        "labels": [
            {"id": each.id, "at": each.at, "label": each.label, "source": each.source}
            for each in labels
        ],
        "outcomes": [
            {"id": o.id, "at": o.at, "outcome": o.name, "value": o.value, "text": o.text}
            for o in outcomes
        ],
    }
