"""What a service says about the rows of a file: a few requests at a time, in the rows' order."""

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

from calibrant.cli.remote_rows import BATCH, Asked, RemoteRows, cut_by_unit
from calibrant.client.address import check_url, plaintext_key_warning, resolve_key
from calibrant.client.answers import PredictionResult as Row
from calibrant.client.answers import ServedBundle
from calibrant.client.client import Client
from calibrant.client.transport import RequestRefused
from calibrant.errors import InputError, ServiceError
from calibrant.workflows.scored_rows import in_order
from calibrant.workflows.write_predictions import Predicted, Said, Teller, refuse_taken, tell_file

__all__ = ["Service", "predict_remotely"]

_AHEAD = 3
"""Requests that are under way besides the one whose answer is waited for."""

_BYTES = 1 << 19
"""Of a request, about: half of what a service takes unless it was told otherwise."""

_TOO_LARGE, _UNREADABLE = 413, 422
_FOR_A_PERSON = {"out_of_scope": "abstain"}
_ENTRY = re.compile(r"\b(inputs|texts|rows|logits)\[(\d+)\]\.?")
_ONE = {"inputs": "", "texts": "text", "rows": "row", "logits": "logits"}
_TIMEOUT, _RETRIES = 30.0, 8
"""A long run outlives a restart of the service, and a key with a low rate."""


@dataclass(frozen=True)
class Service:
    """A service, and what is told it with every row.

    Parameters
    ----------
    url : its address
    served : the bundle that it serves
    key : for the service; None for that of CALIBRANT_KEY
    use_case : what the predictions are used for, or None
    point : position of the one operating point that decides; None for the first of each class
    """

    url: str
    served: ServedBundle
    key: str | None = None
    use_case: str | None = None
    point: int | None = None

    @classmethod
    def at(cls, url: str, key: str | None, use_case: str | None, point: int | None) -> Service:
        """Ask a service what it serves; one that is away is not waited for."""
        url = check_url(url)
        with _client(url, key, timeout=10.0, retries=1) as client:
            return cls(url, client.bundle(), key, use_case, point)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a user should be told."""
        note = plaintext_key_warning(self.url, resolve_key(self.key))
        newer = self.served.refused
        refused = () if newer is None else (f"The service refuses a newer bundle: {newer}",)
        return ((f"{note[0].upper()}{note[1:]}",) if note else ()) + refused


def predict_remotely(
    service: Service, rows: RemoteRows, data: str, out: Path | None, *, unit: str | None = None
) -> Predicted:
    """Ask about every row and write the rows with the answers to `out`, or only count them.

    Requests have names made of the run's and of the rows', so that one that is sent again is on
    record once.
    """
    with _client(service.url, service.key, timeout=_TIMEOUT, retries=_RETRIES) as client:
        asker = _Asker(client, service, data)
        said = _said(asker, rows, data, unit)
        with closing(said):
            first = next(said)  # it tells whether there is a rule for what is out of scope
            scoped = first.out_of_scope is not None
            _refuse_probs(rows, scoped=scoped)
            teller = _teller(service, scoped=scoped)
            refuse_taken(first.table.column_names, teller.names, rows.files[0])
            done = tell_file(_from(first, said), teller, rows, out)
    return replace(done, notes=(*service.notes, *done.notes))


def _client(url: str, key: str | None, *, timeout: float, retries: int) -> Client:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # told as a note
        return Client(url, key, timeout=timeout, retries=retries)


def _teller(service: Service, *, scoped: bool) -> Teller:
    served = service.served
    return Teller(served.classes, decides=bool(served.points), scoped=scoped, stored=True)


def _said(
    asker: _Asker, rows: RemoteRows, data: str, unit: str | None
) -> Generator[Said, None, None]:
    """Yield the rows with the answers about them, a few requests ahead."""
    certain = _teller(asker.service, scoped=False).names

    def parts() -> Generator[Asked, None, None]:
        with closing(rows.batches()) as batches:
            for asked in batches if unit is None else cut_by_unit(batches, unit, data):
                refuse_taken(asked.table.column_names, certain, rows.files[0])  # before it is sent
                yield asked

    with closing(in_order(parts(), asker.begin, _AHEAD)) as answered:
        for _, said in answered:
            yield said


def _from(first: Said, others: Generator[Said, None, None]) -> Generator[Said, None, None]:
    yield first
    yield from others


def _refuse_probs(rows: RemoteRows, *, scoped: bool) -> None:
    """Refuse probabilities where a rule may read the size of logits, which they do not tell."""
    if rows.probs and scoped:
        raise InputError(
            f"{rows.files[0]} holds probabilities, but the service flags rows out of scope by "
            "their logits: give logit_ columns, or predict with the folder of the bundle."
        )


class _Asker:
    """Asks a service about batches of rows.

    Parameters
    ----------
    client : of the service; threads share it
    service : what is told with every row
    data : what errors call the file
    """

    def __init__(self, client: Client, service: Service, data: str) -> None:
        self.service = service
        self._client, self._data = client, data
        self._run = uuid.uuid4().hex
        self._most = BATCH

    def begin(self, asked: Asked) -> Future[Said]:
        """Ask in a thread of its own, which nothing waits for once a run was broken off."""
        future: Future[Said] = Future()

        def run() -> None:
            try:
                future.set_result(self._said(asked))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    def _said(self, asked: Asked) -> Said:
        rows = self._answers(asked)
        served = self.service.served
        try:
            probs = [[row.probabilities[name] for name in served.classes] for row in rows]
        except KeyError as error:
            raise ServiceError(
                f"{self.service.url} answered without a probability of {error}, which it said to "
                "be a class: look into its log."
            ) from None
        # A row out of scope is for a person, as in a file that a bundle wrote.
        words = [_FOR_A_PERSON.get(row.decision or "", row.decision) for row in rows]
        outside = [row.out_of_scope for row in rows]
        decides = bool(served.points)
        return Said(
            asked.table,
            np.array(probs, dtype=np.float64),
            np.array(words) if decides else None,
            [row.acted_as for row in rows] if decides else None,
            [row.action for row in rows] if decides else None,
            None if None in outside else np.array(outside, dtype=bool),
            [row.id for row in rows],
        )

    def _answers(self, asked: Asked) -> list[Row]:
        """Ask about rows: in halves where they are too many, or too large, for the service."""
        n = len(asked)
        large = len(json.dumps(asked.values, ensure_ascii=False).encode()) > _BYTES
        if n > 1 and (n > self._most or large):
            return self._halves(asked)
        try:
            return self._answered(asked)
        except RequestRefused as error:
            if error.status == _TOO_LARGE and n > 1:
                self._most = min(self._most, max(1, n // 2))
                return self._halves(asked)
            if error.status in (_TOO_LARGE, _UNREADABLE):
                raise self._named(asked, error) from None
            raise
        except InputError as error:
            raise self._named(asked, error) from None

    def _halves(self, asked: Asked) -> list[Row]:
        middle = len(asked) // 2
        first, second = asked.part(0, middle), asked.part(middle, len(asked))
        return [*self._answers(first), *self._answers(second)]

    def _answered(self, asked: Asked) -> list[Row]:
        service = self.service
        given: dict[str, Any] = {asked.kind: asked.values}
        answer = self._client.predict(
            **given,
            unit=asked.unit,
            use_case=service.use_case,
            point=service.point,
            idempotency_key=f"{self._run}-{asked.start}-{len(asked)}",
        )
        if answer.bundle.hash != service.served.hash:
            raise ServiceError(
                f"{service.url} serves the bundle {answer.bundle.id} since row {asked.start + 1:,} "
                f"and {service.served.id} before: run it again, so that one bundle decides on all."
            )
        return list(answer.predictions)

    def _named(self, asked: Asked, error: InputError) -> InputError:
        """Say which rows of the file a service speaks of."""
        said = str(error)
        found = _ENTRY.search(said)
        if found is None:
            first, last = asked.start + 1, asked.start + len(asked)
            which = f"data row {first:,}" if first == last else f"data rows {first:,} to {last:,}"
        else:
            which = f"data row {asked.start + int(found[2]) + 1:,}"
            said = _ENTRY.sub(lambda entry: _ONE[entry[1]], said)
        return InputError(f"{which} of {self._data}: {said}")
