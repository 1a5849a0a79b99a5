"""Log of predictions: idempotent writes, and search newest first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, literal, or_, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.expression import UnaryExpression
from sqlalchemy.sql.operators import custom_op

from calibrant.errors import InputError, StoreError, UnknownBundle
from calibrant.store.database import Database, as_json
from calibrant.store.database_errors import is_foreign_key_error
from calibrant.store.records import Logged, LoggedRequest, Prediction
from calibrant.store.schema import predictions, tallies, utc
from calibrant.store.tallies import (
    DECISION,
    LABEL,
    SCORE,
    ClassPlaces,
    add_to_tallies,
    score_bin,
)

Row = tuple[Prediction, str]  # A prediction and the keyed hash of its request

_NAMES = [field.name for field in fields(Prediction)]
_VALUES = attrgetter(*_NAMES)
_AT = _NAMES.index("at")
_JSON = [_NAMES.index(name) for name in ("input", "logits", "probs")]
_COLUMNS = ", ".join(f'"{name}"' for name in [*_NAMES, "request_hash"])

_SQLITE = f"INSERT INTO predictions ({_COLUMNS}) VALUES ({', '.join('?' * (len(_NAMES) + 1))})"
_SQLITE_EXISTING = (
    "SELECT DISTINCT request FROM predictions WHERE request IN (SELECT value FROM json_each(?))"
)
_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]
_TYPED = ", ".join(
    f'"{name}" {predictions.c[name].type.compile(_DIALECT)}' for name in [*_NAMES, "request_hash"]
)
# One parameter for all rows: twice as fast as one per row or per value.
_POSTGRESQL = (
    f"INSERT INTO predictions ({_COLUMNS}) SELECT {_COLUMNS} "
    f"FROM jsonb_to_recordset(%s) AS given({_TYPED}) "
)
_POSTGRESQL_FIRST = (
    f"{_POSTGRESQL} WHERE NOT EXISTS "
    "(SELECT FROM predictions AS there WHERE there.request = given.request) ORDER BY request "
    "ON CONFLICT (request, position) DO NOTHING RETURNING request"
)


def insert_first(connection: Connection, rows: Sequence[Row]) -> set[str]:
    """Insert the first row of each new request, which claims it; return the claimed ids.

    SQLite has a single writer. On PostgreSQL the unique constraint makes others wait for the end
    of this transaction, and the order of requests prevents deadlocks.
    """
    if connection.dialect.name == "postgresql":
        return {request for (request,) in _insert_json(connection, _POSTGRESQL_FIRST, rows)}
    requests = as_json([prediction.request for prediction, _ in rows])
    existing = {request for (request,) in connection.exec_driver_sql(_SQLITE_EXISTING, (requests,))}
    new = [row for row in rows if row[0].request not in existing]
    insert_rest(connection, new)
    return {prediction.request for prediction, _ in new}


def insert_rest(connection: Connection, rows: Sequence[Row]) -> None:
    """Insert rows of requests that this transaction has claimed."""
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        _insert_json(connection, _POSTGRESQL, rows)
    else:
        connection.exec_driver_sql(_SQLITE, [_sqlite_values(*row) for row in rows])


def _sqlite_values(prediction: Prediction, request_hash: str) -> tuple[Any, ...]:
    """Return the values as SQLAlchemy would bind them, three times faster."""
    values = [*_VALUES(prediction), request_hash]
    moment = utc(prediction.at).replace(tzinfo=None)
    values[_AT] = moment.isoformat(" ", "microseconds")
    for position in _JSON:
        if values[position] is not None:
            values[position] = as_json(values[position])
    return tuple(values)


def _insert_json(connection: Connection, statement: str, rows: Sequence[Row]) -> Any:
    records = [
        {**dict(zip(_NAMES, _VALUES(prediction), strict=True)),
         "at": utc(prediction.at).isoformat(), "request_hash": request_hash}
        for prediction, request_hash in rows
    ]  # fmt: skip
    return connection.exec_driver_sql(statement, (as_json(records),))


def find_hours(
    connection: Connection,
    *,
    bundle: str | None,
    label: str | None,
    decision: str | None,
    scores: tuple[float | None, float | None],
) -> tuple[datetime, datetime] | None:
    """Return a time range that contains all matches; None if there are none.

    Each condition alone has tallies, whose first and last hours bound the matches.
    """
    groups: list[tuple[str, Sequence[str] | None]] = [(DECISION, None)]  # any prediction
    if label is not None:
        groups.append((LABEL, [label]))
    if decision is not None:
        groups.append((DECISION, [decision]))
    if scores != (None, None):
        groups.append((SCORE, _bins(*scores)))
    ranges = [_hours(connection, kind, names, bundle) for kind, names in groups]
    hours = [hours_of for hours_of in ranges if hours_of is not None]
    if len(hours) < len(groups):
        return None
    first, last = max(hours_of[0] for hours_of in hours), min(hours_of[1] for hours_of in hours)
    return None if first > last else (first, last + timedelta(hours=1))


def _bins(low: float | None, high: float | None) -> list[str]:
    """Return the names of the bins of scores between two bounds."""
    low, high = 0.0 if low is None else low, 1.0 if high is None else high
    if math.isnan(low) or math.isnan(high):
        return []
    first, last = (score_bin(min(max(bound, 0.0), 1.0)) for bound in (low, high))
    return [str(bin) for bin in range(first, last + 1)]


def _hours(
    connection: Connection, kind: str, names: Sequence[str] | None, bundle: str | None
) -> tuple[datetime, datetime] | None:
    """Return the first and last hour of some tallies, or None."""
    hour = tallies.c.hour
    query = select(hour).where(tallies.c.kind == kind).limit(1)
    if names is not None:
        query = query.where(tallies.c.name.in_(names))
    if bundle is not None:
        query = query.where(tallies.c.bundle == bundle)
    first = connection.scalar(query.order_by(hour))
    last = connection.scalar(query.order_by(hour.desc()))
    return None if first is None or last is None else (first, last)


_LIMIT = 2_000  # Rows that can be scanned in a few milliseconds


def choose_index(
    connection: Connection, conditions: Mapping[str, str], scores: Sequence[ColumnElement[bool]]
) -> str | None:
    """Choose the condition whose index is used; None for the index by time.

    The rarest condition is chosen. If all are common, any index finds a page of the newest rows
    quickly, because each covers the other columns.
    """
    if "unit" in conditions:
        return "unit"
    names = [name for name in ("label", "decision", "use_case") if name in conditions]
    if len(names) < 2 and not scores:
        return names[0] if names else None
    groups = {name: [predictions.c[name] == conditions[name]] for name in names}
    if scores:
        groups["score"] = list(scores)
    counts = {name: _count_some(connection, conditions) for name, conditions in groups.items()}
    rarest = min(counts, key=lambda name: counts[name])
    if counts[rarest] < _LIMIT:
        return rarest
    return names[0] if names else None


def unindexed(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Prevent SQLite from using the index of a column."""
    return UnaryExpression(column, operator=custom_op("+"), type_=column.type)


def _count_some(connection: Connection, conditions: Sequence[ColumnElement[bool]]) -> int:
    """Count rows, up to the limit."""
    some_rows = (
        select(literal(1)).select_from(predictions).where(*conditions).limit(_LIMIT).subquery()
    )
    return connection.execute(select(func.count()).select_from(some_rows)).scalar_one()


_FIELDS = [predictions.c[field.name] for field in fields(Prediction)]
_PIECE = 1_000  # ids per query
_MOST = 10_000  # predictions per page


class PredictionLog:
    """All recorded predictions.

    Parameters
    ----------
    database : database with the tables of the store

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
        """Write requests in one transaction: all of them or, on an error, none.

        A request whose id exists is not written again: its result has the stored predictions, or
        reports a conflict if its hash differs, or that rows were erased; other requests are
        written regardless. Of concurrent processes that add a request, exactly one writes it.

        Raises `UnknownBundle` if the bundle of a prediction is not recorded.

        Parameters
        ----------
        requests : requests with at least one prediction each, at positions 0, 1, 2, ...
        """
        by_id: dict[str, LoggedRequest] = {}
        for request in requests:
            _check(request)
            by_id.setdefault(request.id, request)
        if not by_id:
            return []
        with self._database.write() as connection:
            self._database.check_secret(connection)
            new = _insert(connection, by_id)
            existing = _read_requests(connection, [i for i in by_id if i not in new])
            written = [p for id in new for p in by_id[id].predictions]
            add_to_tallies(connection, written, self._places)
        logged = []
        for request in requests:
            if request.id in new:  # the first with this id; others find it in `existing`
                new.remove(request.id)
                existing[request.id] = request
                logged.append(Logged(request.predictions))
            else:
                logged.append(_compare(request, existing.get(request.id)))
        return logged

    def get(self, id: str) -> Prediction | None:
        """Return the prediction with this id, or None."""
        with self._database.read() as connection:
            stored = connection.execute(select(*_FIELDS).where(predictions.c.id == id)).first()
        return None if stored is None else Prediction(*stored)

    def of_request(self, id: str) -> tuple[Prediction, ...]:
        """Return the predictions of a request in the order of its inputs."""
        with self._database.read() as connection:
            stored = _read_requests(connection, [id])
        return stored[id].predictions if id in stored else ()

    def find(self, id: str, hash: str) -> Logged | None:
        """Return the stored request, as `add` would; None if it is unknown.

        Parameters
        ----------
        id, hash : id of the request, and keyed hash of its content
        """
        with self._database.read() as connection:
            stored = _read_requests(connection, [id]).get(id)
        return None if stored is None else _compare(LoggedRequest(id, hash, ()), stored)

    def count(self) -> int:
        """Return the number of predictions."""
        with self._database.read() as connection:
            return connection.execute(select(func.count()).select_from(predictions)).scalar_one()

    def recent(self, since: datetime) -> int:
        """Count predictions since a time; fast for a recent time.

        Parameters
        ----------
        since : time with a time zone
        """
        query = select(func.count()).where(predictions.c.at >= since)
        with self._database.read() as connection:
            return connection.execute(query).scalar_one()

    def latest(self) -> datetime | None:
        """Return the time of the newest prediction, or None."""
        with self._database.read() as connection:
            stored: datetime | None = connection.scalar(select(func.max(predictions.c.at)))
        return stored

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
        unit, use_case, label, decision, bundle, branch, key : exact values
        min_score, max_score : bounds of the score, inclusive
        since, until : time range, end excluded
        before : id of the last prediction of the previous page
        limit : page size, up to 10,000
        """
        if not 1 <= limit <= _MOST:
            raise InputError(f"limit must be between 1 and {_MOST:,}, got {limit}.")
        table = predictions.c
        equal = {
            "unit": unit, "use_case": use_case, "label": label, "decision": decision,
            "bundle": bundle, "branch": branch, "key": key,
        }  # fmt: skip
        conditions = {name: value for name, value in equal.items() if value is not None}
        within = _bounds(table.score, min_score, max_score)
        with self._database.read() as connection:
            hours = None
            if unit is None and (conditions or within):
                hours = find_hours(
                    connection, bundle=bundle, label=label, decision=decision,
                    scores=(min_score, max_score),
                )  # fmt: skip
                if hours is None:
                    return []
            index, has_planner = None, self._database.dialect == "postgresql"
            if not has_planner:
                index = choose_index(connection, conditions, within)
            at = table.at if has_planner or index != "score" else unindexed(table.at)
            query = select(*_FIELDS).where(*within, *_times(at, (since, until), hours))
            for name, value in conditions.items():
                column = table[name] if has_planner or name == index else unindexed(table[name])
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
                f"a prediction of request {request.id!r} has the request id "
                f"{prediction.request!r}: use the same id."
            )
        if not math.isfinite(prediction.latency_ms):
            raise StoreError(f"latency_ms must be a number, got {prediction.latency_ms}.")


def _insert(connection: Connection, by_id: Mapping[str, LoggedRequest]) -> set[str]:
    """Insert the new requests, and return their ids."""
    try:
        new = insert_first(connection, [(r.predictions[0], r.hash) for r in by_id.values()])
        insert_rest(connection, [(p, by_id[i].hash) for i in new for p in by_id[i].predictions[1:]])
    except IntegrityError as error:
        if not is_foreign_key_error(error):
            raise
        hashes = sorted({p.bundle for r in by_id.values() for p in r.predictions})
        raise UnknownBundle(
            f"the bundle of a prediction is not recorded ({', '.join(hashes[:3])[:200]}): "
            "record its bundle first, with Store.bundles.record."
        ) from None
    return new


def _compare(request: LoggedRequest, stored: LoggedRequest | None) -> Logged:
    if stored is None:  # erased concurrently
        return Logged((), erased=True)
    if stored.hash != request.hash:
        return Logged((), conflict=True)
    if len(stored.predictions) < len(request.predictions):
        return Logged((), erased=True)
    return Logged(stored.predictions, repeated=True)


def _read_requests(connection: Connection, ids: list[str]) -> dict[str, LoggedRequest]:
    """Return the stored requests."""
    stored: dict[str, list[Prediction]] = {}
    hashes: dict[str, str] = {}
    table = predictions.c
    for start in range(0, len(ids), _PIECE):
        query = (
            select(*_FIELDS, table.request_hash)
            .where(table.request.in_(ids[start : start + _PIECE]))
            .order_by(table.request, table.position)
        )
        for *values, request_hash in connection.execute(query):
            prediction = Prediction(*values)
            stored.setdefault(prediction.request, []).append(prediction)
            hashes[prediction.request] = request_hash
    return {id: LoggedRequest(id, hashes[id], tuple(rows)) for id, rows in stored.items()}


def _bounds(
    column: ColumnElement[Any], low: float | None, high: float | None
) -> list[ColumnElement[bool]]:
    """Return the conditions low <= column <= high."""
    stored = [None if low is None else column >= low, None if high is None else column <= high]
    return [bound for bound in stored if bound is not None]


def _times(
    at: ColumnElement[Any], *spans: tuple[datetime | None, datetime | None] | None
) -> list[ColumnElement[bool]]:
    """Return the conditions that a time is in each span, end excluded."""
    known = [bound for bound in spans if bound is not None]
    since = [at >= first for first, _ in known if first is not None]
    return since + [at < last for _, last in known if last is not None]


def _after(connection: Connection, id: str, at: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition for rows after the prediction `id`."""
    table = predictions.c
    seen = connection.execute(select(table.at).where(table.id == id)).scalar_one_or_none()
    if seen is None:
        raise InputError(
            f"before={id!r} is not the id of a prediction; it may have been erased: start again "
            "with the newest."
        )
    # In two parts, because the indexes have `at` but not `id`.
    return and_(at <= seen, or_(at < seen, table.id < id))
