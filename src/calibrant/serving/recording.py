"""What was decided goes on record, and only then into the answer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from pydantic_core import to_json

from calibrant.errors import StoreError, StoreUnavailable, StoreUnfit, UnknownBundle
from calibrant.serving.bundle_slot import Served
from calibrant.serving.http.problems import Problem
from calibrant.serving.metrics import Metrics
from calibrant.serving.request_inputs import kept
from calibrant.serving.scoring import Asked, ScoredRow
from calibrant.serving.settings import InputPolicy
from calibrant.store import Logged, LoggedRequest, Prediction, Store
from calibrant.store.records import new_id

__all__ = ["OTHER_BODY", "Recorder", "row_of"]

_log = logging.getLogger("calibrant.serving")

_AGAIN = "the request could not be read back from the database: send it again."
_REFUSED = "a fault in the service: its log has the details; the prediction may be on record."
OTHER_BODY = "this Idempotency-Key came with another body before: use a new key for it."


class Recorder:
    """Writes batches of scored requests and makes their answers.

    Parameters
    ----------
    store : where they are written
    metrics : counts decisions and scores
    policy : what is kept of inputs
    """

    def __init__(self, store: Store, metrics: Metrics, policy: InputPolicy = "keep") -> None:
        self._store, self._metrics, self._policy = store, metrics, policy
        self._classes: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()

    def write(self, scored: Sequence[tuple[Asked, list[ScoredRow]]]) -> list[bytes | Problem]:
        """Put a batch on record in one commit; return the answers, in the order of the requests.

        Where the store refuses a request for good, the others are written one by one.
        """
        for asked, _ in scored:
            self.note(asked.served)
        at, clock = datetime.now(UTC), time.perf_counter()
        requests = [self._request(asked, rows, at, clock) for asked, rows in scored]
        try:
            logged = self._added(scored, requests)
        except (StoreUnavailable, StoreUnfit):
            raise
        except StoreError as error:
            if len(scored) == 1:
                _log.error("a prediction could not be put on record", exc_info=error)
                return [Problem(HTTPStatus.INTERNAL_SERVER_ERROR, _REFUSED)]
            return [answer for one in scored for answer in self.write([one])]
        self._metrics.stored(time.perf_counter() - clock)
        return [self._told(asked, each) for (asked, _), each in zip(scored, logged, strict=True)]

    def stored(self, request: str, body: bytes) -> bytes | Problem | None:
        """Return the answer to a request that is on record; None where it is not."""
        found = self._store.predictions.find(request, self._store.keyed_hash(body))
        return None if found is None else self._answer(request, found)

    def note(self, served: Served) -> None:
        """Put a bundle on record that has not been there yet."""
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
        """Return the classes of a bundle that decided at any time."""
        if bundle not in self._classes:
            found = self._store.bundles.get(bundle)
            if found is None:
                raise StoreError(f"the store has predictions of the bundle {bundle}, but not it.")
            self._classes[bundle] = tuple(found.classes)
        return self._classes[bundle]

    def _added(
        self, scored: Sequence[tuple[Asked, list[ScoredRow]]], requests: Sequence[LoggedRequest]
    ) -> list[Logged]:
        try:
            return self._store.predictions.add(requests)
        except UnknownBundle:  # another database is in its place now: it gets the bundles too
            self._classes.clear()
            for asked, _ in scored:
                self.note(asked.served)
            return self._store.predictions.add(requests)

    def _told(self, asked: Asked, logged: Logged) -> bytes | Problem:
        """Return an answer; what goes wrong with it must not take others with it."""
        try:
            return self._answer(asked.request, logged)
        except (StoreUnavailable, StoreUnfit):
            return Problem.busy(_AGAIN)
        except Exception as error:
            _log.error("a prediction is on record, but not answered", exc_info=error)
            return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, _REFUSED)

    def _request(
        self, asked: Asked, rows: Sequence[ScoredRow], at: datetime, clock: float
    ) -> LoggedRequest:
        latency = round((clock - asked.since) * 1000, 3)
        hashed = self._store.keyed_hash
        return LoggedRequest(
            id=asked.request,
            hash=hashed(asked.body),
            predictions=tuple(
                Prediction(
                    id=new_id(),
                    at=at,
                    bundle=asked.served.hash,
                    request=asked.request,
                    position=i,
                    unit=asked.unit,
                    use_case=asked.use_case,
                    branch=asked.branch,
                    key=asked.key,
                    input=kept(asked.inputs[i], self._policy),
                    input_hash=hashed(_bytes_of(asked.rows[i])),
                    logits=row.logits,
                    probs=row.probs,
                    label=row.label,
                    score=max(row.probs),
                    decision=row.decision,
                    acted_as=row.acted_as,
                    action=row.action,
                    operating_point=row.operating_point,
                    out_of_scope=row.out_of_scope,
                    asked_point=asked.point,
                    latency_ms=latency,
                )
                for i, row in enumerate(rows)
            ),
        )

    def _answer(self, request: str, logged: Logged) -> bytes | Problem:
        if logged.erased:
            return Problem.busy(_AGAIN)
        if logged.conflict:
            return Problem(HTTPStatus.CONFLICT, OTHER_BODY)
        if not logged.repeated:
            self._metrics.decided(logged.predictions)
        bundle = logged.predictions[0].bundle
        classes = self.classes_of(bundle)
        return to_json(
            {
                "predictions": [row_of(each, classes) for each in logged.predictions],
                "bundle": {"id": bundle[:12], "hash": bundle},
                "request": request,
                "repeated": logged.repeated,
            }
        )


def _bytes_of(row: Any) -> bytes:
    return row.encode() if isinstance(row, str) else to_json(row)


def row_of(found: Prediction, classes: Sequence[str]) -> dict[str, Any]:
    """Return a prediction as `PredictedRow` says it."""
    return {
        "id": found.id,
        "label": found.label,
        "probabilities": dict(zip(classes, found.probs, strict=True)),
        "decision": found.decision,
        "acted_as": found.acted_as,
        "action": found.action,
        "operating_point": found.operating_point,
        "out_of_scope": found.out_of_scope,
    }
