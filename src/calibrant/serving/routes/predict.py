"""`POST /v1/predict`: probabilities and decisions for one or many inputs."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from calibrant.client.messages import PredictAnswer, PredictBody
from calibrant.serving.http.predict_endpoint import PATH, predicted
from calibrant.serving.routes.requests import body_of, problems, service_of

__all__ = ["router"]

router = APIRouter(tags=["predictions"])


@router.post(
    PATH,
    summary="Predict and decide",
    response_class=Response,
    responses={
        200: {"model": PredictAnswer, "description": "Decided, and on record."},
        **problems(400, 401, 403, 409, 413, 415, 422, 429, 503),
    },
    openapi_extra=body_of(PredictBody, retried=True),
)
async def predict(request: Request) -> Response:
    """Say for each input how probable each class is, and whether to act on it.

    The answer is sent when the predictions are on record. Sent again with the same
    `Idempotency-Key` and body, a request is answered as before and not recorded twice.
    """
    # For the description: `PredictEndpoint` answers these requests before they come here.
    answer = await predicted(service_of(request), request.headers, request.receive)
    return Response(answer, media_type="application/json")
