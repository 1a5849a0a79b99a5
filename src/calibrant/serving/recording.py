"""Writes predictions to the store, then builds the responses."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from pydantic_core import to_json

from calibrant.bundle.decision_scores import NO_SCORE, DecisionScore
from calibrant.data.explanation import Reason
from calibrant.errors import StoreError, StoreUnavailable, StoreUnfit, UnknownBundle
from calibrant.serving.bundle_slot import Served
from calibrant.serving.http.problems import Problem
from calibrant.serving.metrics import Metrics
from calibrant.serving.scoring import ScoredRow, ScoreRequest, apply_input_policy
from calibrant.serving.settings import InputPolicy
from calibrant.serving.stored_scores import StoredScores
from calibrant.store import Logged, LoggedRequest, Prediction, Store
from calibrant.store.records import new_id

_log = logging.getLogger("calibrant.serving")

_NOT_READ_BACK = "the request could not be read back from the database: send it again."
_INTERNAL_ERROR = "internal error: see the log of the service; the prediction may be recorded."
OTHER_BODY = "this Idempotency-Key was used with another body: use a new key."


class Recorder:
    """Writes batches of scored requests and builds their responses."""

    def __init__(self, store: Store, metrics: Metrics, policy: InputPolicy = "keep") -> None:
        self._store, self._metrics, self._policy = store, metrics, policy
        self._classes: dict[str, tuple[str, ...]] = {}
        self.scores = StoredScores(store.bundles.get)
        self._lock = threading.Lock()

    def write(
        self, scored: Sequence[tuple[ScoreRequest, list[ScoredRow]]]
    ) -> list[bytes | Problem]:
        """Write a batch in one commit; return the responses in the order of the requests.

        If the store rejects one request permanently, the requests are written one by one.
        """
        for request, _ in scored:
            self.record_bundle(request.served)
        at, clock = datetime.now(UTC), time.perf_counter()
        requests = [self._to_record(request, rows, at, clock) for request, rows in scored]
        try:
            logged = self._add(scored, requests)
        except (StoreUnavailable, StoreUnfit):
            raise
        except StoreError as error:
            if len(scored) == 1:
                _log.error("a prediction could not be recorded", exc_info=error)
                return [Problem(HTTPStatus.INTERNAL_SERVER_ERROR, _INTERNAL_ERROR)]
            return [answer for item in scored for answer in self.write([item])]
        self._metrics.observe_write(time.perf_counter() - clock)
        return [
            self._respond(request, result, rows)
            for (request, rows), result in zip(scored, logged, strict=True)
        ]

    def find_answer(self, request: str, body: bytes) -> bytes | Problem | None:
        """Return the response of a recorded request, or None."""
        logged = self._store.predictions.find(request, self._store.keyed_hash(body))
        return None if logged is None else self._answer(request, logged)

    def record_bundle(self, served: Served) -> None:
        """Record a bundle unless it is recorded already."""
        if served.hash in self._classes:
            return
        with self._lock:
            self._store.bundles.record(
                hash=served.hash,
                name=served.name,
                classes=list(served.classes),
                manifest=dict(served.manifest),
                at=served.loaded_at,
            )
            self._classes[served.hash] = served.classes

    def classes_of(self, bundle: str) -> tuple[str, ...]:
        """Return the classes of any recorded bundle."""
        if bundle not in self._classes:
            record = self._store.bundles.get(bundle)
            if record is None:
                raise StoreError(
                    f"the store has predictions of bundle {bundle}, but not the bundle itself."
                )
            self._classes[bundle] = tuple(record.classes)
        return self._classes[bundle]

    def _add(
        self,
        scored: Sequence[tuple[ScoreRequest, list[ScoredRow]]],
        requests: Sequence[LoggedRequest],
    ) -> list[Logged]:
        try:
            return self._store.predictions.add(requests)
        except UnknownBundle:  # the database was replaced: record the bundles again
            self._classes.clear()
            for request, _ in scored:
                self.record_bundle(request.served)
            return self._store.predictions.add(requests)

    def _respond(
        self, request: ScoreRequest, logged: Logged, rows: Sequence[ScoredRow]
    ) -> bytes | Problem:
        """Return a response; a failure must not affect other requests."""
        try:
            return self._answer(request.request, logged, request.served.hash, rows)
        except (StoreUnavailable, StoreUnfit):
            return Problem.busy(_NOT_READ_BACK)
        except Exception as error:
            _log.error("a prediction is recorded, but not answered", exc_info=error)
            return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, _INTERNAL_ERROR)

    def _to_record(
        self, request: ScoreRequest, rows: Sequence[ScoredRow], at: datetime, clock: float
    ) -> LoggedRequest:
        latency = round((clock - request.since) * 1000, 3)
        keyed_hash = self._store.keyed_hash
        return LoggedRequest(
            id=request.request,
            hash=keyed_hash(request.body),
            predictions=tuple(
                Prediction(
                    id=new_id(),
                    at=at,
                    bundle=request.served.hash,
                    request=request.request,
                    position=i,
                    unit=request.unit,
                    use_case=request.use_case,
                    branch=request.branch,
                    key=request.key,
                    input=apply_input_policy(request.inputs[i], self._policy),
                    input_hash=keyed_hash(_to_bytes(request.rows[i])),
                    logits=row.logits,
                    probs=row.probs,
                    label=row.label,
                    score=max(row.probs),
                    decision=row.decision,
                    acted_as=row.acted_as,
                    action=row.action,
                    operating_point=row.operating_point,
                    out_of_scope=row.out_of_scope,
                    asked_point=request.point,
                    latency_ms=latency,
                )
                for i, row in enumerate(rows)
            ),
        )

    def _answer(
        self,
        request: str,
        logged: Logged,
        served: str = "",
        rows: Sequence[ScoredRow] = (),
    ) -> bytes | Problem:
        """Return the response of a request; `rows` are its rows as scored now by `served`.

        A repeated request may have been recorded with another bundle, to which the reasons of now
        do not belong.
        """
        if logged.erased:
            return Problem.busy(_NOT_READ_BACK)
        if logged.conflict:
            return Problem(HTTPStatus.CONFLICT, OTHER_BODY)
        if not logged.repeated:
            self._metrics.count_predictions(logged.predictions)
        bundle = logged.predictions[0].bundle
        classes = self.classes_of(bundle)
        if rows and not logged.repeated:
            scores = [row.decision_score for row in rows]
        else:
            scores = self.scores.of(logged.predictions)
        same = rows and bundle == served
        reasons = [rows[each.position].reasons if same else None for each in logged.predictions]
        return to_json(
            {
                "predictions": [
                    prediction_to_row(each, classes, score, why)
                    for each, score, why in zip(logged.predictions, scores, reasons, strict=True)
                ],
                "bundle": {"id": bundle[:12], "hash": bundle},
                "request": request,
                "repeated": logged.repeated,
            }
        )


def _to_bytes(row: Any) -> bytes:
    return row.encode() if isinstance(row, str) else to_json(row)


def prediction_to_row(
    prediction: Prediction,
    classes: Sequence[str],
    score: DecisionScore | None,
    reasons: Sequence[Reason] | None = None,
) -> dict[str, Any]:
    """Return the fields of `PredictedRow`."""
    return {
        "id": prediction.id,
        "label": prediction.label,
        "probabilities": dict(zip(classes, prediction.probs, strict=True)),
        "decision": prediction.decision,
        "acted_as": prediction.acted_as,
        "action": prediction.action,
        "operating_point": prediction.operating_point,
        "out_of_scope": prediction.out_of_scope,
        **(NO_SCORE if score is None else score.to_dict()),
        "reasons": None if reasons is None else [each._asdict() for each in reasons],
    }
