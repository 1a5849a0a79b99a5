"""The log of predictions: each is written once, whatever is repeated; searched newest first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select
from sqlalchemy.exc import IntegrityError

from calibrant.errors import InputError, StoreError, UnknownBundle
from calibrant.store.database import Database
from calibrant.store.database_errors import lacks_its_parent
from calibrant.store.index_choice import leading, unindexed
from calibrant.store.insertion import insert_first, insert_rest
from calibrant.store.records import Logged, LoggedRequest, Prediction
from calibrant.store.schema import predictions
from calibrant.store.tally_updates import ClassPlaces, add_to_tallies
from calibrant.store.time_spans import span

__all__ = ["PredictionLog"]

_FIELDS = [predictions.c[field.name] for field in fields(Prediction)]
_PIECE = 1_000  # ids a query
_MOST = 10_000  # predictions a page


class PredictionLog:
    """All predictions that were answered.

    Parameters
    ----------
    database : with the store's tables

    Examples
    --------
    >>> import tempfile
    >>> from datetime import UTC, datetime
    >>> from calibrant.store import LoggedRequest, Prediction, Store, new_id
    >>> store = Store.open(tempfile.mkdtemp() + "/calibrant.db")
    >>> store.bundles.record(hash="3f0a", name="returns", classes=["defective", "other"],
    ...                      manifest={}, at=datetime.now(UTC))
    >>> one = Prediction(
    ...     id=new_id(), at=datetime.now(UTC), bundle="3f0a", request="order-17", position=0,
    ...     unit="customer-17", use_case="returns", branch=None, key=None,
    ...     input={"text": "the zipper broke"}, input_hash="9c1e", logits=[2.0, 0.0],
    ...     probs=[0.88, 0.12], label="defective", score=0.88, decision="act",
    ...     acted_as="defective", action="refund", operating_point=0, out_of_scope=False,
    ...     latency_ms=3.1)
    >>> request = LoggedRequest("order-17", "5d41", (one,))
    >>> [logged.repeated for logged in store.predictions.add([request, request])]
    [False, True]
    >>> store.predictions.get(one.id) == one, store.predictions.count()
    (True, 1)
    >>> store.close()
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._places = ClassPlaces()

    def add(self, requests: Sequence[LoggedRequest]) -> list[Logged]:
        """Write requests in one transaction: all of them, or, where anything fails, none.

        A request whose id is there already is not written again: the answer has what the store
        has, or says that there is a conflict where something else was asked under that id. Where
        some of its rows were erased since, or all of them in this very moment, the answer says
        that, and others in the batch are written all the same. Of several processes that add a
        request at once, exactly one writes it.

        UnknownBundle is raised where the bundle of a prediction is not on record.

        Parameters
        ----------
        requests : with their predictions, at least one each, at positions 0, 1, 2, ...
        """
        given: dict[str, LoggedRequest] = {}
        for request in requests:
            _check(request)
            given.setdefault(request.id, request)
        if not given:
            return []
        with self._database.write() as connection:
            self._database.check_secret(connection)
            new = _insert(connection, given)
            there = _stored(connection, [i for i in given if i not in new])
            written = [p for id in new for p in given[id].predictions]
            add_to_tallies(connection, written, self._places)
        logged = []
        for request in requests:
            if request.id in new:  # the first of that id; others find it in `there`
                new.remove(request.id)
                there[request.id] = request
                logged.append(Logged(request.predictions))
            else:
                logged.append(_repeated(request, there.get(request.id)))
        return logged

    def get(self, id: str) -> Prediction | None:
        """Return the prediction of that id, None where there is none."""
        with self._database.read() as connection:
            found = connection.execute(select(*_FIELDS).where(predictions.c.id == id)).first()
        return None if found is None else Prediction(*found)

    def of_request(self, id: str) -> tuple[Prediction, ...]:
        """Return the predictions of a request in the order of its inputs."""
        with self._database.read() as connection:
            found = _stored(connection, [id])
        return found[id].predictions if id in found else ()

    def find(self, id: str, hash: str) -> Logged | None:
        """Return what the store has of a request, as `add` would; None where it has nothing.

        Parameters
        ----------
        id, hash : of the request, and of what was asked
        """
        with self._database.read() as connection:
            found = _stored(connection, [id]).get(id)
        return None if found is None else _repeated(LoggedRequest(id, hash, ()), found)

    def count(self) -> int:
        """Return how many predictions there are."""
        with self._database.read() as connection:
            return connection.execute(select(func.count()).select_from(predictions)).scalar_one()

    def recent(self, since: datetime) -> int:
        """Return how many predictions were made from a moment on; quick where it is not long ago.

        Parameters
        ----------
        since : has a time zone
        """
        asked = select(func.count()).where(predictions.c.at >= since)
        with self._database.read() as connection:
            return connection.execute(asked).scalar_one()

    def latest(self) -> datetime | None:
        """Return when the newest prediction was made, None where there is none."""
        with self._database.read() as connection:
            found: datetime | None = connection.scalar(select(func.max(predictions.c.at)))
        return found

    def search(
        self,
        *,
        unit: str | None = None,
        use_case: str | None = None,
        label: str | None = None,
        decision: str | None = None,
        bundle: str | None = None,
        branch: str | None = None,
        key: str | None = None,
        min_score: float | None = None,
        max_score: float | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[Prediction]:
        """Return the newest predictions that meet all conditions, newest first.

        Parameters
        ----------
        unit, use_case, label, decision, bundle, branch, key : equal to these
        min_score, max_score : bounds that the score may reach
        since, until : from this moment on; before this moment
        before : id of the last prediction seen: the page after it is returned
        limit : length of a page, up to 10,000
        """
        if not 1 <= limit <= _MOST:
            raise InputError(f"limit must be between 1 and {_MOST:,}, got {limit}.")
        table = predictions.c
        equal = {
            "unit": unit, "use_case": use_case, "label": label, "decision": decision,
            "bundle": bundle, "branch": branch, "key": key,
        }  # fmt: skip
        asked = {name: value for name, value in equal.items() if value is not None}
        within = _bounds(table.score, min_score, max_score)
        with self._database.read() as connection:
            hours = None
            if unit is None and (asked or within):
                hours = span(
                    connection, bundle=bundle, label=label, decision=decision,
                    scores=(min_score, max_score),
                )  # fmt: skip
                if hours is None:
                    return []
            led, free = None, self._database.dialect == "postgresql"
            if not free:
                led = leading(connection, asked, within)
            at = table.at if free or led != "score" else unindexed(table.at)
            query = select(*_FIELDS).where(*within, *_times(at, (since, until), hours))
            for name, value in asked.items():
                column = table[name] if free or name == led else unindexed(table[name])
                query = query.where(column == value)
            if before is not None:
                query = query.where(_after(connection, before, at))
            newest = query.order_by(at.desc(), table.id.desc()).limit(limit)
            return [Prediction(*row) for row in connection.execute(newest)]


def _check(request: LoggedRequest) -> None:
    places = [prediction.position for prediction in request.predictions]
    if not places or places != list(range(len(places))):
        raise StoreError(
            f"the predictions of request {request.id!r} must be at positions 0, 1, 2, ..., got "
            f"{places[:5]}."
        )
    for prediction in request.predictions:
        if prediction.request != request.id:
            raise StoreError(
                f"a prediction of request {request.id!r} says that its request is "
                f"{prediction.request!r}: give both the same id."
            )
        if not math.isfinite(prediction.latency_ms):
            raise StoreError(f"latency_ms must be a number, got {prediction.latency_ms}.")


def _insert(connection: Connection, given: Mapping[str, LoggedRequest]) -> set[str]:
    """Write the requests that are not there, and return their ids."""
    try:
        new = insert_first(connection, [(r.predictions[0], r.hash) for r in given.values()])
        insert_rest(connection, [(p, given[i].hash) for i in new for p in given[i].predictions[1:]])
    except IntegrityError as error:
        if not lacks_its_parent(error):
            raise
        hashes = sorted({p.bundle for r in given.values() for p in r.predictions})
        raise UnknownBundle(
            f"a prediction is of a bundle that is not on record ({', '.join(hashes[:3])[:200]}): "
            "record its bundle first, with Store.bundles.record."
        ) from None
    return new


def _repeated(request: LoggedRequest, found: LoggedRequest | None) -> Logged:
    if found is None:  # erased since its first row was refused
        return Logged((), erased=True)
    if found.hash != request.hash:
        return Logged((), conflict=True)
    if len(found.predictions) < len(request.predictions):
        return Logged((), erased=True)
    return Logged(found.predictions, repeated=True)


def _stored(connection: Connection, ids: list[str]) -> dict[str, LoggedRequest]:
    """Return requests as they are in the store."""
    found: dict[str, list[Prediction]] = {}
    hashes: dict[str, str] = {}
    table = predictions.c
    for start in range(0, len(ids), _PIECE):
        asked = (
            select(*_FIELDS, table.request_hash)
            .where(table.request.in_(ids[start : start + _PIECE]))
            .order_by(table.request, table.position)
        )
        for *values, request_hash in connection.execute(asked):
            prediction = Prediction(*values)
            found.setdefault(prediction.request, []).append(prediction)
            hashes[prediction.request] = request_hash
    return {id: LoggedRequest(id, hashes[id], tuple(rows)) for id, rows in found.items()}


def _bounds(
    column: ColumnElement[Any], low: float | None, high: float | None
) -> list[ColumnElement[bool]]:
    """Return the conditions that a column lies between two values, both of which it may be."""
    found = [None if low is None else column >= low, None if high is None else column <= high]
    return [each for each in found if each is not None]


def _times(
    at: ColumnElement[Any], *spans: tuple[datetime | None, datetime | None] | None
) -> list[ColumnElement[bool]]:
    """Return the conditions that a moment lies in each span, from its first moment to its last."""
    known = [each for each in spans if each is not None]
    since = [at >= first for first, _ in known if first is not None]
    return since + [at < last for _, last in known if last is not None]


def _after(connection: Connection, id: str, at: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return what rows further down than the prediction `id` have in common."""
    table = predictions.c
    seen = connection.execute(select(table.at).where(table.id == id)).scalar_one_or_none()
    if seen is None:
        raise InputError(
            f"before={id!r} is not the id of a prediction; it may have been erased: begin again "
            "with the newest."
        )
    # In two parts, for an index has `at` and not `id`.
    return and_(at <= seen, or_(at < seen, table.id < id))
