"""Predict the rows of a file with a service, a few requests at a time."""

from __future__ import annotations

import json
import re
import threading
import uuid
import warnings
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.cli.progress import progress
from calibrant.cli.remote_rows import BATCH, RemoteRequest, RemoteRows, split_by_unit
from calibrant.client.address import check_url, plaintext_key_warning, resolve_key
from calibrant.client.answers import PredictionResult as Row
from calibrant.client.answers import ServedBundle
from calibrant.client.client import Client
from calibrant.client.transport import RequestRefused
from calibrant.errors import InputError, ServiceError
from calibrant.workflows.scored_rows import run_in_order
from calibrant.workflows.write_predictions import (
    PredictedRows,
    PredictionSummary,
    PredictionWriter,
    refuse_existing_columns,
    write_predictions,
)

_REQUESTS_AHEAD = 3  # Requests in flight besides the one being awaited

_BYTES = 1 << 19  # Approximate request size: half of the default limit of a service

_TOO_LARGE, _UNREADABLE = 413, 422
_FOR_A_PERSON = {"out_of_scope": "abstain"}
_ENTRY = re.compile(r"\b(inputs|texts|rows|logits)\[(\d+)\]\.?")
_SINGULAR = {"inputs": "", "texts": "text", "rows": "row", "logits": "logits"}
_TIMEOUT, _RETRIES = 30.0, 8  # Enough to survive a restart of the service or a low rate limit


@dataclass(frozen=True)
class RemoteService:
    """A service, its bundle, and the options sent with every row."""

    url: str
    served: ServedBundle
    key: str | None = None
    use_case: str | None = None
    point: int | None = None

    @classmethod
    def connect(
        cls, url: str, key: str | None, use_case: str | None, point: int | None
    ) -> RemoteService:
        """Fetch the bundle description, with few retries."""
        url = check_url(url)
        with _client(url, key, timeout=10.0, retries=1) as client:
            return cls(url, client.bundle(), key, use_case, point)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes to show the user."""
        note = plaintext_key_warning(self.url, resolve_key(self.key))
        newer = self.served.refused
        refused = () if newer is None else (f"The service refuses a newer bundle: {newer}",)
        return ((f"{note[0].upper()}{note[1:]}",) if note else ()) + refused


def predict_remotely(
    service: RemoteService,
    rows: RemoteRows,
    data: str,
    out: Path | None,
    *,
    unit: str | None = None,
) -> PredictionSummary:
    """Write the rows with their predictions to `out`, or only count them.

    Idempotency keys of the run and its rows ensure that a repeated request is recorded once.
    """
    with _client(service.url, service.key, timeout=_TIMEOUT, retries=_RETRIES) as client:
        requester = _Requester(client, service, data)
        batches = _predict_batches(requester, rows, data, unit)
        with closing(batches):
            first = next(batches)  # shows whether there is an out-of-scope rule
            scoped = first.out_of_scope is not None
            _refuse_probs(rows, scoped=scoped)
            writer = _writer(service, scoped=scoped)
            refuse_existing_columns(first.table.column_names, writer.names, rows.files[0])
            summary = write_predictions(
                _prepend(first, batches), writer, rows, out, progress=progress
            )
    return replace(summary, notes=(*service.notes, *summary.notes))


def _client(url: str, key: str | None, *, timeout: float, retries: int) -> Client:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # shown as a note
        return Client(url, key, timeout=timeout, retries=retries)


def _writer(service: RemoteService, *, scoped: bool) -> PredictionWriter:
    served = service.served
    return PredictionWriter(served.classes, decides=bool(served.points), scoped=scoped, stored=True)


def _predict_batches(
    requester: _Requester, rows: RemoteRows, data: str, unit: str | None
) -> Generator[PredictedRows, None, None]:
    """Yield predicted rows, a few requests ahead."""
    new_columns = _writer(requester.service, scoped=False).names

    def parts() -> Generator[RemoteRequest, None, None]:
        with closing(rows.batches()) as batches:
            for request in batches if unit is None else split_by_unit(batches, unit, data):
                refuse_existing_columns(
                    request.table.column_names, new_columns, rows.files[0]
                )  # before sending
                yield request

    with closing(run_in_order(parts(), requester.submit, _REQUESTS_AHEAD)) as responses:
        for _, batches in responses:
            yield batches


def _prepend(
    first: PredictedRows, others: Generator[PredictedRows, None, None]
) -> Generator[PredictedRows, None, None]:
    yield first
    yield from others


def _refuse_probs(rows: RemoteRows, *, scoped: bool) -> None:
    """Refuse probabilities if the out-of-scope rule may need the scale of the logits."""
    if rows.probs and scoped:
        raise InputError(
            f"{rows.files[0]} contains probabilities, but the service detects rows out of scope "
            "by their logits: provide logit_ columns, or predict with the bundle folder."
        )


class _Requester:
    """Sends batches of rows to a service; errors call the file `data`."""

    def __init__(self, client: Client, service: RemoteService, data: str) -> None:
        self.service = service
        self._client, self._data = client, data
        self._run = uuid.uuid4().hex
        self._max_rows = BATCH

    def submit(self, request: RemoteRequest) -> Future[PredictedRows]:
        """Send in a daemon thread, so that an interrupted run does not wait for it."""
        future: Future[PredictedRows] = Future()

        def run() -> None:
            try:
                future.set_result(self._predict(request))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    def _predict(self, request: RemoteRequest) -> PredictedRows:
        rows = self._request_rows(request)
        served = self.service.served
        try:
            probs = [[row.probabilities[name] for name in served.classes] for row in rows]
        except KeyError as error:
            raise ServiceError(
                f"{self.service.url} returned no probability for class {error}: "
                "check the log of the service."
            ) from None
        # Rows out of scope abstain, as with a bundle on disk.
        words = [_FOR_A_PERSON.get(row.decision or "", row.decision) for row in rows]
        outside = [row.out_of_scope for row in rows]
        decides = bool(served.points)
        return PredictedRows(
            request.table,
            np.array(probs, dtype=np.float64),
            np.array(words) if decides else None,
            [row.acted_as for row in rows] if decides else None,
            [row.action for row in rows] if decides else None,
            None if None in outside else np.array(outside, dtype=bool),
            [row.id for row in rows],
        )

    def _request_rows(self, request: RemoteRequest) -> list[Row]:
        """Send rows, split in halves if they are too many or too large for the service."""
        n = len(request)
        large = len(json.dumps(request.values, ensure_ascii=False).encode()) > _BYTES
        if n > 1 and (n > self._max_rows or large):
            return self._split(request)
        try:
            return self._send(request)
        except RequestRefused as error:
            if error.status == _TOO_LARGE and n > 1:
                self._max_rows = min(self._max_rows, max(1, n // 2))
                return self._split(request)
            if error.status in (_TOO_LARGE, _UNREADABLE):
                raise self._locate_error(request, error) from None
            raise
        except InputError as error:
            raise self._locate_error(request, error) from None

    def _split(self, request: RemoteRequest) -> list[Row]:
        middle = len(request) // 2
        first, second = request.slice(0, middle), request.slice(middle, len(request))
        return [*self._request_rows(first), *self._request_rows(second)]

    def _send(self, request: RemoteRequest) -> list[Row]:
        service = self.service
        inputs: dict[str, Any] = {request.kind: request.values}
        answer = self._client.predict(
            **inputs,
            unit=request.unit,
            use_case=service.use_case,
            point=service.point,
            idempotency_key=f"{self._run}-{request.start}-{len(request)}",
        )
        if answer.bundle.hash != service.served.hash:
            raise ServiceError(
                f"{service.url} switched to bundle {answer.bundle.id} at row {request.start + 1:,} "
                f"and {service.served.id} before: run it again, so that one bundle decides on all."
            )
        return list(answer.predictions)

    def _locate_error(self, request: RemoteRequest, error: InputError) -> InputError:
        """Replace the service's row numbers by those of the file."""
        message = str(error)
        match = _ENTRY.search(message)
        if match is None:
            first, last = request.start + 1, request.start + len(request)
            which = f"data row {first:,}" if first == last else f"data rows {first:,} to {last:,}"
        else:
            which = f"data row {request.start + int(match[2]) + 1:,}"
            message = _ENTRY.sub(lambda entry: _SINGULAR[entry[1]], message)
        return InputError(f"{which} of {self._data}: {message}")
