"""Log of labels and outcomes of predictions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any

from sqlalchemy import Connection, Table, delete, func, select
from sqlalchemy.dialects import postgresql, sqlite

from calibrant.errors import InputError, StoreError, StoreUnavailable, UnknownClass
from calibrant.store.database import Database
from calibrant.store.records import AuditedCount, Label, Outcome, Recorded
from calibrant.store.schema import bundles, labels, outcome_requests, outcomes, predictions, utc


def find_request_hash(connection: Connection, request: str) -> str | None:
    """Return the content hash of a recorded request, or None."""
    query = select(outcome_requests.c.hash).where(outcome_requests.c.request == request)
    return connection.execute(query).scalar_one_or_none()


def claim_request(connection: Connection, request: str, hash: str) -> str | None:
    """Record a request; if its id is already recorded, return the hash of the earlier one.

    Two keyed hashes and the time are stored. They identify neither a unit nor a prediction, so that
    forgetting a unit does not affect them; `prune` deletes old ones.
    """
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    row = {"request": request, "hash": hash, "at": datetime.now(UTC)}
    claim = insert(outcome_requests).values(row).on_conflict_do_nothing(index_elements=["request"])
    if connection.execute(claim.returning(outcome_requests.c.request)).first() is not None:
        return None
    earlier = find_request_hash(connection, request)
    if earlier is None:
        raise StoreUnavailable("this request was erased concurrently: send it again.")
    return earlier


def prune_requests(connection: Connection, before: datetime, limit: int) -> int:
    """Delete up to `limit` requests before a time, and return their number."""
    oldest = select(outcome_requests.c.request).where(outcome_requests.c.at < before).limit(limit)
    return connection.execute(
        delete(outcome_requests).where(outcome_requests.c.request.in_(oldest))
    ).rowcount


_LABEL_CLASSES_PIECE = 1_000  # ids per query
_SHOWN = 8  # Classes listed in an error


def check_classes(
    connection: Connection, labels: Sequence[Label], other: Collection[str] = ()
) -> None:
    """Raise `UnknownClass` for the first label that is not a class of its bundle."""
    checked = [label for label in labels if label.id not in other]
    bundle_of = _bundles_of(connection, list(dict.fromkeys(label.prediction for label in checked)))
    known = {
        hash: dict.fromkeys(str(name) for name in classes)
        for hash, classes in connection.execute(
            select(bundles.c.hash, bundles.c.classes).where(
                bundles.c.hash.in_(set(bundle_of.values()))
            )
        )
    }
    for label in checked:
        classes = known[bundle_of[label.prediction]]
        if label.label not in classes:
            raise UnknownClass(describe_unknown_class(label.label, list(classes)), label.id)


def describe_unknown_class(label: str, classes: Sequence[str]) -> str:
    """Describe an unknown label, with the closest class and the list of classes."""
    normalised = {name.strip().casefold(): name for name in reversed(classes)}
    near = get_close_matches(label.strip().casefold(), normalised, n=1)
    nearest = f"closest: {normalised[near[0]]!r}; " if near else ""
    listed = ", ".join(repr(name) for name in classes[:_SHOWN])
    more = f" and {len(classes) - _SHOWN:,} more" if len(classes) > _SHOWN else ""
    return (
        f"{label!r} is not a class of the bundle that made the prediction "
        f"({nearest}its classes are {listed}{more})"
    )


def _bundles_of(connection: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Return the hash of the bundle that made each prediction."""
    bundle_of: dict[str, str] = {}
    for start in range(0, len(ids), _LABEL_CLASSES_PIECE):
        query = select(predictions.c.id, predictions.c.bundle).where(
            predictions.c.id.in_(ids[start : start + _LABEL_CLASSES_PIECE])
        )
        bundle_of |= dict(connection.execute(query).all())
    return bundle_of


Feedback = tuple[tuple[Label, ...], tuple[Outcome, ...]]  # Labels and outcomes of a prediction
_PIECE = 1_000  # ids per query

_LABEL = (
    labels.c.id, labels.c.at, labels.c.prediction, labels.c.label, labels.c.source, labels.c.key
)  # fmt: skip

_OUTCOME = (
    outcomes.c.id, outcomes.c.at, outcomes.c.prediction, outcomes.c.name, outcomes.c.value,
    outcomes.c.text, outcomes.c.key,
)  # fmt: skip


class OutcomeLog:
    """Labels and outcomes of predictions.

    Parameters
    ----------
    database : database with the tables of the store

    Examples
    --------
    >>> import tempfile
    >>> from datetime import UTC, datetime
    >>> from calibrant.store import Label, Store
    >>> store = Store.open(tempfile.mkdtemp() + "/calibrant.db")
    >>> label = Label("label-1", datetime.now(UTC), "no-such-id", "defective", "agent", None)
    >>> store.outcomes.add([], [label])
    Recorded(added=0, repeated=0, unknown=('no-such-id',), conflict=False)
    >>> store.close()
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        outcomes: Sequence[Outcome],
        labels: Sequence[Label],
        *,
        request: str | None = None,
        hash: str | None = None,
        other: Collection[str] = (),
    ) -> Recorded:
        """Write labels and outcomes in one transaction.

        Nothing is written if a prediction is not in the store, or if a label is not a class of
        the bundle (`UnknownClass`). An existing id is a repeat, or a conflict if its content
        differs; a conflict writes nothing. A repeated request is a repeat as a whole, or a conflict
        if its hash differs; if its predictions were erased since, they are unknown.

        Times per prediction are increasing: if the clock was set back, a time is moved just after
        the latest one.

        Parameters
        ----------
        outcomes, labels : entries for predictions in the store, in order
        request, hash : id of the request and keyed hash of its content; only a keyed hash of the
            id is stored
        other : ids of labels that need not be a class of the bundle
        """
        if (request is None) != (hash is None):
            raise InputError("request and hash must be given together: give both or none.")
        for outcome in outcomes:
            if outcome.value is not None and not math.isfinite(outcome.value):
                raise StoreError(f"the value of an outcome must be a number, got {outcome.value}.")
        prediction_ids = [entry.prediction for entry in outcomes] + [
            entries.prediction for entries in labels
        ]
        if not prediction_ids:
            return Recorded(0, 0)
        request_hashes = None
        if request is not None and hash is not None:
            request_hashes = (
                self._database.keyed_hash(request.encode("utf-8", "surrogatepass")),
                hash,
            )
        with self._database.write() as connection:
            self._database.check_secret(connection)
            refused = _refusal(connection, prediction_ids, outcomes, labels, request_hashes)
            if refused is not None:
                return refused
            check_classes(connection, labels, other)
            entries = [asdict(entry) for entry in outcomes]
            added = _insert(connection, _OUTCOMES, _order_times(connection, _OUTCOMES, entries))
            entries = _with_decisions(connection, labels)
            added += _insert(connection, _LABELS, _order_times(connection, _LABELS, entries))
        return Recorded(added, len(prediction_ids) - added)

    def of(self, prediction: str) -> Feedback:
        """Return the labels and the outcomes of a prediction, oldest first."""
        return self.of_many([prediction])[prediction]

    def of_many(self, predictions: Sequence[str]) -> dict[str, Feedback]:
        """Return the labels and outcomes of several predictions, oldest first.

        Parameters
        ----------
        predictions : ids; unknown ones have no labels and no outcomes
        """
        labels: dict[str, list[Label]] = {id: [] for id in predictions}
        outcomes: dict[str, list[Outcome]] = {id: [] for id in predictions}
        with self._database.read() as connection:
            for row in _read_feedback(connection, _LABELS, _LABEL, list(labels)):
                labels[row.prediction].append(Label(*row))
            for row in _read_feedback(connection, _OUTCOMES, _OUTCOME, list(labels)):
                outcomes[row.prediction].append(Outcome(*row))
        return {id: (tuple(labels[id]), tuple(outcomes[id])) for id in labels}

    def audited(
        self,
        since: datetime,
        until: datetime | None = None,
        *,
        bundle: str | None = None,
        most: int = 2_000,
    ) -> list[AuditedCount]:
        """Count, by class, how often the newest labelled predictions acted correctly.

        The latest label of a prediction counts.

        Parameters
        ----------
        since, until : time range of the predictions, end excluded
        bundle : only predictions of the bundle with this hash
        most : maximum number of predictions, newest first
        """
        if most < 1:
            raise InputError(f"most must be at least 1, got {most}.")
        table = _LABELS.c
        query = select(table.prediction, table.acted_as, table.label).where(table.acted_at >= since)
        if until is not None:
            query = query.where(table.acted_at < until)
        if bundle is not None:
            query = query.where(table.bundle == bundle)
        newest = query.order_by(
            table.acted_at.desc(), table.prediction, table.at.desc(), table.id.desc()
        )
        with self._database.read() as connection:
            piece = {"yield_per": min(most, _PIECE)}  # read no more than needed
            with connection.execute(newest, execution_options=piece) as rows:
                return _audit(rows, most)


_LABELS, _OUTCOMES = labels, outcomes  # shadowed by arguments of `add`


def _read_feedback(
    connection: Connection, table: Table, columns: Sequence[Any], ids: list[str]
) -> Iterator[Any]:
    """Read labels or outcomes of predictions, a thousand per query."""
    for start in range(0, len(ids), _PIECE):
        prediction_ids = table.c.prediction.in_(ids[start : start + _PIECE])
        query = select(*columns).where(prediction_ids).order_by(table.c.at, table.c.id)
        yield from connection.execute(query)


def _refusal(
    connection: Connection,
    prediction_ids: Sequence[str],
    outcomes: Sequence[Outcome],
    labels: Sequence[Label],
    request_hashes: tuple[str, str] | None,
) -> Recorded | None:
    """Return the result if nothing may be written, else None."""
    earlier = None if request_hashes is None else find_request_hash(connection, request_hashes[0])
    if request_hashes is not None and earlier is not None and earlier != request_hashes[1]:
        return Recorded(0, 0, conflict=True)
    existing = _lock_predictions(connection, sorted(set(prediction_ids)))
    unknown = tuple(id for id in dict.fromkeys(prediction_ids) if id not in existing)
    if unknown:  # never made, or erased
        return Recorded(0, 0, unknown)
    if earlier is None:
        if _differ(connection, _OUTCOMES, outcomes) or _differ(connection, _LABELS, labels):
            return Recorded(0, 0, conflict=True)
        earlier = None if request_hashes is None else claim_request(connection, *request_hashes)
    if request_hashes is None or earlier is None:
        return None
    return (
        Recorded(0, len(prediction_ids))
        if earlier == request_hashes[1]
        else Recorded(0, 0, conflict=True)
    )


def _lock_predictions(connection: Connection, ids: list[str]) -> set[str]:
    """Return the existing ids, locked on PostgreSQL until the transaction ends."""
    existing_ids: set[str] = set()
    for start in range(0, len(ids), _PIECE):
        query = select(predictions.c.id).where(predictions.c.id.in_(ids[start : start + _PIECE]))
        in_order = query.order_by(predictions.c.id)  # prevents deadlocks with erasures
        existing_ids |= set(connection.execute(in_order.with_for_update(key_share=True)).scalars())
    return existing_ids


def _differ(connection: Connection, table: Table, entries: Sequence[Any]) -> bool:
    """Whether an id exists with other content, apart from the time."""
    contents = {entry.id: _content(asdict(entry)) for entry in entries}
    if any(contents[entry.id] != _content(asdict(entry)) for entry in entries):
        return True  # the same id twice
    ids = list(contents)
    for start in range(0, len(ids), _PIECE):
        columns = _LABEL if table is _LABELS else _OUTCOME
        query = select(*columns).where(table.c.id.in_(ids[start : start + _PIECE]))
        for row in connection.execute(query).mappings():
            if _content(dict(row)) != contents[row["id"]]:
                return True
    return False


def _content(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "at"}


def _with_decisions(connection: Connection, entries: Sequence[Label]) -> list[dict[str, Any]]:
    """Return labels as rows, with the decisions of their predictions."""
    table, acts = predictions.c, {}
    ids = list(dict.fromkeys(entry.prediction for entry in entries))
    for start in range(0, len(ids), _PIECE):
        query = select(table.id, table.at, table.acted_as, table.bundle).where(
            table.id.in_(ids[start : start + _PIECE]),
            table.decision == "act",
            table.acted_as.is_not(None),
            table.asked_point.is_(None),  # a requested point has no promise
        )
        acts.update({id: act for id, *act in connection.execute(query)})
    names = ("acted_at", "acted_as", "bundle")
    none = (None, None, None)
    return [
        asdict(entry) | dict(zip(names, acts.get(entry.prediction, none), strict=True))
        for entry in entries
    ]


def _audit(rows: Iterable[Any], most: int) -> list[AuditedCount]:
    """Count predictions; the first row of each has its latest label."""
    seen: set[str] = set()
    n: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for prediction, acted_as, label in rows:
        if prediction in seen:
            continue
        if len(seen) == most:
            break
        seen.add(prediction)
        n[acted_as] += 1
        right[acted_as] += label == acted_as
    return [AuditedCount(name, n[name], right[name]) for name in sorted(n)]


def _order_times(
    connection: Connection, table: Table, entries: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return rows with increasing times per prediction, after those in the store."""
    latest: dict[str, datetime] = {}
    ids = list(dict.fromkeys(entry["prediction"] for entry in entries))
    for start in range(0, len(ids), _PIECE):
        prediction_ids = table.c.prediction.in_(ids[start : start + _PIECE])
        query = select(table.c.prediction, func.max(table.c.at)).where(prediction_ids)
        existing_ids = connection.execute(query.group_by(table.c.prediction))
        latest |= dict(existing_ids.all())
    rows: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if entry["id"] in rows:
            continue
        at, last = utc(entry["at"]), latest.get(entry["prediction"])
        if last is not None and at <= last:
            at = last + timedelta(microseconds=1)  # ids do not imply an order
        latest[entry["prediction"]] = at
        rows[entry["id"]] = entry | {"at": at}
    return list(rows.values())


def _insert(connection: Connection, table: Table, entries: Sequence[dict[str, Any]]) -> int:
    """Insert the rows with new ids, and return their number."""
    rows = {entry["id"]: entry for entry in entries}
    if not rows:
        return 0
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    ordered = [rows[id] for id in sorted(rows)]  # prevents deadlocks
    written = insert(table).on_conflict_do_nothing(index_elements=["id"]).returning(table.c.id)
    return len(connection.execute(written, ordered).all())
