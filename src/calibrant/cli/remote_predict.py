"""Predict the rows of a file with a service, a few requests at a time."""

from __future__ import annotations

import json
import re
import threading
import uuid
import warnings
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import date, time
from decimal import Decimal
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from calibrant.cli.progress import progress
from calibrant.client.address import check_url, plaintext_key_warning, resolve_key
from calibrant.client.answers import PredictionResult as Row
from calibrant.client.answers import ServedBundle
from calibrant.client.client import Client
from calibrant.client.transport import RequestRefused
from calibrant.data.encoders.input_columns import format_names
from calibrant.data.explanation import Reason
from calibrant.data.row_columns import as_words
from calibrant.data.row_files import check_bundle_columns, estimate_rows, row_files, scan_rows
from calibrant.errors import InputError, ServiceError
from calibrant.files.source import BatchLocation, is_score
from calibrant.scores.files import count_rows
from calibrant.scores.tables import ScoreTable, TableBatch
from calibrant.workflows.image_rows import holds_images
from calibrant.workflows.predict import (
    PredictedRows,
    PredictionSummary,
    PredictionWriter,
    refuse_existing_columns,
    write_predictions,
)
from calibrant.workflows.scored_rows import describe_empty_texts, run_in_order

BATCH = 256  # Rows per request


@dataclass(frozen=True)
class RemoteRequest:
    """Rows of one request."""

    table: pa.Table  # columns to write again
    kind: str  # "texts", "rows" or "logits"
    values: Sequence[Any]  # one value per row
    start: int  # position of the first row in the file
    unit: str | None = None  # unit of the rows, such as a customer, or None

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> RemoteRequest:
        """Return rows `start` to `stop`."""
        table, values = self.table.slice(start, stop - start), self.values[start:stop]
        return RemoteRequest(table, self.kind, values, self.start + start, self.unit)

    def with_unit(self, unit: str | None) -> RemoteRequest:
        """Return the same rows with a unit."""
        return RemoteRequest(self.table, self.kind, self.values, self.start, unit)


class ServedScores:
    """Rows of score files, for a service whose bundle has no model.

    Probabilities are sent as logarithms, which are equivalent unless one is exactly 0.
    """

    def __init__(self, served: ServedBundle, data: str, *, positive: str | None = None) -> None:
        self._table = ScoreTable(data, positive=positive)
        self._order = self._table.order(served.classes, name=f"the bundle {served.name}")
        self.probs = False

    @property
    def files(self) -> list[Path]:
        """The input files."""
        return self._table.files

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes to show the user."""
        sent = ("The probabilities were sent as logarithms, because a service takes logits.",)
        return (*self._table.notes, *(sent if self.probs else ()))

    def estimate(self) -> int:
        """Estimate the number of rows."""
        return count_rows(self._table.files)

    def batches(self) -> Generator[RemoteRequest, None, None]:
        """Yield the rows in order, in constant memory."""
        seen = 0
        for batch in self._table.batches():
            self._refuse_zeros(batch)
            keep = [name for name in batch.table.column_names if not is_score(name, "prob")]
            table = batch.table.select(keep)
            for start in range(0, table.num_rows, BATCH):
                stop = min(start + BATCH, table.num_rows)  # Arrow does not clip a slice
                logits = batch.logits[start:stop, self._order].astype(np.float64).tolist()
                yield RemoteRequest(
                    table.slice(start, stop - start), "logits", logits, seen + start
                )
            seen += table.num_rows

    def _refuse_zeros(self, batch: TableBatch) -> None:
        """Refuse zeros, whose replacement only the bundle's calibrator knows."""
        self.probs = batch.probs is not None
        if batch.floored:
            raise InputError(
                f"{self.files[0]} has probabilities of exactly 0 or 1, which have no finite "
                "logits: provide logit_ columns, or predict with the bundle folder."
            )


class ServedRows:
    """Rows with the columns that the model of a service reads; a missing text counts as empty."""

    def __init__(self, served: ServedBundle, data: str, *, text: str | None = None) -> None:
        if holds_images(data):
            raise InputError(
                f"{data} contains images or arrays, but the service reads {served.input}: name a "
                ".csv, .tsv, .parquet or .jsonl file."
            )
        kinds = ("numbers", "texts", "formatted")
        numbers, texts, formatted = (served.columns.get(kind, ()) for kind in kinds)
        named = text or next(iter(texts), "text")
        self._text = named if served.input == "text" else None
        self._numbers = () if self._text is not None else numbers
        self._texts = texts if self._text is None else (self._text,)
        self._formatted = () if self._text is not None else formatted
        self._n_empty = 0
        self.probs = False
        self.files = row_files(data)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes to show the user."""
        return describe_empty_texts(self._n_empty)

    def estimate(self) -> int:
        """Estimate the number of rows."""
        return estimate_rows(self.files)

    def batches(self) -> Generator[RemoteRequest, None, None]:
        """Yield the rows in order, in constant memory."""
        seen = 0
        if self._text is None:
            check_bundle_columns(self.files, (*self._numbers, *self._texts, *self._formatted))
        scan = partial(scan_rows, numbers=self._numbers, texts=self._texts)
        for table in scan(self.files, unchanged=self._formatted, batch_rows=BATCH):
            if self._text is not None:
                self._n_empty += table[self._text].null_count
                texts = table[self._text].fill_null("").to_pylist()
                yield RemoteRequest(table, "texts", texts, seen)
            else:
                names = [*self._numbers, *self._texts, *self._formatted]
                rows = [_to_json(row) for row in table.select(names).to_pylist()]
                yield RemoteRequest(table, "rows", rows, seen)
            seen += table.num_rows


def _to_json(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with dates and times as text, and decimals as numbers."""

    def convert(value: Any) -> Any:
        if isinstance(value, date | time):
            return value.isoformat()
        return float(value) if isinstance(value, Decimal) else value

    return {name: convert(value) for name, value in row.items()}


RemoteRows = ServedScores | ServedRows


def open_remote_rows(
    served: ServedBundle, data: str, *, text: str | None = None, positive: str | None = None
) -> RemoteRows:
    """Open a file for a service: inputs of its model, or score files if it has none."""
    if served.input not in ("text", "table", "logits"):
        raise InputError(
            f"the service reads {served.input}, which this version of calibrant cannot send: "
            "upgrade it."
        )
    if text is not None and served.input != "text":
        expected = "score files" if served.input == "logits" else "a table"
        raise InputError(
            f"--text {text}: the service reads {expected}, not texts: leave --text out."
        )
    if served.input == "logits":
        return ServedScores(served, data, positive=positive)
    if positive is not None:
        raise InputError(
            f"--positive {positive} is for score files, but the service has a model: leave "
            "--positive out."
        )
    return ServedRows(served, data, text=text)


def split_by_unit(
    batches: Iterator[RemoteRequest], column: str, data: str
) -> Generator[RemoteRequest, None, None]:
    """Split batches where the unit changes, because a request has one unit."""
    for request in batches:
        names = request.table.column_names
        if column not in names:
            raise InputError(
                f"{data} has no column '{column}', which --unit names: it has "
                f"{format_names(names)}."
            )
        units = as_words(request.table[column], BatchLocation(Path(data)), column).to_pylist()
        start = 0
        for unit, same in groupby(units):
            stop = start + sum(1 for _ in same)
            yield request.slice(start, stop).with_unit(unit)
            start = stop


_EXPLAINED = 32  # Rows per request with reasons, which take a service many times as long

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
    reasons: int = 0  # how many parts of each row to ask for

    @classmethod
    def connect(
        cls, url: str, key: str | None, use_case: str | None, point: int | None, reasons: int = 0
    ) -> RemoteService:
        """Fetch the bundle description, with few retries."""
        url = check_url(url)
        with _client(url, key, timeout=10.0, retries=1) as client:
            return cls(url, client.bundle(), key, use_case, point, reasons)

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
    served, point = service.served, service.point
    rules = [
        asdict(rule)
        for rule in served.rules
        if (not rule.alternative if point is None else rule.operating_point == point)
    ]
    return PredictionWriter(
        served.classes,
        decides=bool(served.points),
        scoped=scoped,
        stored=True,
        explained=service.reasons > 0,
        rules=rules,
    )


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


def _to_reasons(row: Row) -> list[Reason] | None:
    """Return the reasons of a row, as a bundle on disk gives them."""
    if row.reasons is None:
        return None
    return [Reason(each.part, each.contribution) for each in row.reasons]


class _Requester:
    """Sends batches of rows to a service; errors call the file `data`."""

    def __init__(self, client: Client, service: RemoteService, data: str) -> None:
        self.service = service
        self._client, self._data = client, data
        self._run = uuid.uuid4().hex
        self._max_rows = _EXPLAINED if service.reasons else BATCH

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
            None
            if not served.rules
            else (
                [row.decision_rule for row in rows],
                [row.decision_score for row in rows],
                [row.decision_threshold for row in rows],
            ),
            None if not self.service.reasons else [_to_reasons(row) for row in rows],
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
            reasons=service.reasons,
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
