"""OpenAPI entry of `POST /v1/predict`; the requests are handled by `PredictEndpoint`.

`_App.__call__` -> `HostGuard` -> `PredictEndpoint` answers these requests before FastAPI's router
sees them. The route here describes them in the OpenAPI schema, and is reached only if the app is
mounted below a path prefix of another app. To change how predictions are answered, edit
`middleware.answer_predict`, which both use.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from calibrant.client.messages import PredictAnswer, PredictBody
from calibrant.serving.http.middleware import PATH, answer_predict
from calibrant.serving.routes.requests import describe_body, describe_problems, service_of

router = APIRouter(tags=["predictions"])


@router.post(
    PATH,
    summary="Predict and decide",
    response_class=Response,
    responses={
        200: {"model": PredictAnswer, "description": "Predicted and recorded."},
        **describe_problems(400, 401, 403, 409, 413, 415, 422, 429, 503),
    },
    openapi_extra=describe_body(PredictBody, retried=True),
)
async def predict(request: Request) -> Response:
    """Return the probability of each class and the decision for each input.

    The response is sent after the predictions are recorded. A request repeated with the same
    `Idempotency-Key` and body gets the stored answer and is recorded once; reasons are computed
    again.
    """
    answer = await answer_predict(service_of(request), request.headers, request.receive)
    return Response(answer, media_type="application/json")
