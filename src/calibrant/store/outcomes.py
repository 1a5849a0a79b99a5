"""The log of what came after: labels that people gave, and outcomes of what was done."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite

from calibrant.errors import InputError, StoreError
from calibrant.store.database import Database
from calibrant.store.label_classes import check_classes
from calibrant.store.outcome_requests import claim_telling, told_before
from calibrant.store.records import AuditedCount, Label, Outcome, Recorded
from calibrant.store.schema import labels, outcomes, predictions, utc

__all__ = ["OutcomeLog"]

Told = tuple[tuple[Label, ...], tuple[Outcome, ...]]
"""What was told about a prediction."""

_PIECE = 1_000  # ids a query
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
    database : with the store's tables

    Examples
    --------
    >>> import tempfile
    >>> from datetime import UTC, datetime
    >>> from calibrant.store import Label, Store
    >>> store = Store.open(tempfile.mkdtemp() + "/calibrant.db")
    >>> told = Label("label-1", datetime.now(UTC), "no-such-id", "defective", "agent", None)
    >>> store.outcomes.add([], [told])
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

        Where a prediction is not in the store, or a label is no class of the bundle that made its
        prediction (UnknownClass), nothing is written at all. An id that is there already is a
        repeat and is not written again; where it says something else than before, nothing is
        written either. A request that has told before tells nothing new: all of it is a repeat, or
        a conflict where it told something else; where what it told was erased since, its
        predictions are not in the store.

        What is told of a prediction later counts as later, also where the clock was set back: its
        time is then moved just behind the latest one.

        Parameters
        ----------
        outcomes, labels : of predictions that are in the store, in the order they are told
        request, hash : id of the request that tells them, and keyed hash of what it tells; only
            a keyed hash of the id is kept
        other : ids of labels that may be a class which the bundle does not have
        """
        if (request is None) != (hash is None):
            raise InputError("request and hash belong together: give both or none.")
        for outcome in outcomes:
            if outcome.value is not None and not math.isfinite(outcome.value):
                raise StoreError(f"the value of an outcome must be a number, got {outcome.value}.")
        about = [told.prediction for told in outcomes] + [told.prediction for told in labels]
        if not about:
            return Recorded(0, 0)
        telling = None
        if request is not None and hash is not None:
            telling = self._database.keyed_hash(request.encode("utf-8", "surrogatepass")), hash
        with self._database.write() as connection:
            self._database.check_secret(connection)
            refused = _refused(connection, about, outcomes, labels, telling)
            if refused is not None:
                return refused
            check_classes(connection, labels, other)
            told = [asdict(one) for one in outcomes]
            added = _insert(connection, _OUTCOMES, _in_order(connection, _OUTCOMES, told))
            told = _with_acts(connection, labels)
            added += _insert(connection, _LABELS, _in_order(connection, _LABELS, told))
        return Recorded(added, len(about) - added)

    def of(self, prediction: str) -> Told:
        """Return the labels and the outcomes of a prediction, oldest first."""
        return self.of_many([prediction])[prediction]

    def of_many(self, predictions: Sequence[str]) -> dict[str, Told]:
        """Return, for ids of predictions, their labels and outcomes, oldest first.

        Parameters
        ----------
        predictions : ids; one that nothing was told about has no labels and no outcomes
        """
        labels: dict[str, list[Label]] = {id: [] for id in predictions}
        outcomes: dict[str, list[Outcome]] = {id: [] for id in predictions}
        with self._database.read() as connection:
            for row in _told(connection, _LABELS, _LABEL, list(labels)):
                labels[row.prediction].append(Label(*row))
            for row in _told(connection, _OUTCOMES, _OUTCOME, list(labels)):
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
        """Return how often the newest labelled predictions that acted were right, by class.

        Of several labels of a prediction the latest one counts.

        Parameters
        ----------
        since, until : predictions made from this moment on; before this moment
        bundle : only predictions of this bundle, named by its hash
        most : how many predictions are looked at, the newest first
        """
        if most < 1:
            raise InputError(f"most must be at least 1, got {most}.")
        table = _LABELS.c
        asked = select(table.prediction, table.acted_as, table.label).where(table.acted_at >= since)
        if until is not None:
            asked = asked.where(table.acted_at < until)
        if bundle is not None:
            asked = asked.where(table.bundle == bundle)
        newest = asked.order_by(
            table.acted_at.desc(), table.prediction, table.at.desc(), table.id.desc()
        )
        with self._database.read() as connection:
            piece = {"yield_per": min(most, _PIECE)}  # no more is read than is looked at
            with connection.execute(newest, execution_options=piece) as rows:
                return _audit(rows, most)


_LABELS, _OUTCOMES = labels, outcomes  # `add` has arguments of these names


def _told(
    connection: Connection, table: Table, columns: Sequence[Any], ids: list[str]
) -> Iterator[Any]:
    """Read what was told about predictions, in one query for each thousand of them."""
    for start in range(0, len(ids), _PIECE):
        about = table.c.prediction.in_(ids[start : start + _PIECE])
        asked = select(*columns).where(about).order_by(table.c.at, table.c.id)
        yield from connection.execute(asked)


def _refused(
    connection: Connection,
    about: Sequence[str],
    outcomes: Sequence[Outcome],
    labels: Sequence[Label],
    telling: tuple[str, str] | None,
) -> Recorded | None:
    """Return the answer where nothing may be written, None where all may."""
    before = None if telling is None else told_before(connection, telling[0])
    if telling is not None and before is not None and before != telling[1]:
        return Recorded(0, 0, conflict=True)
    there = _known(connection, sorted(set(about)))
    unknown = tuple(id for id in dict.fromkeys(about) if id not in there)
    if unknown:  # never made, or erased since they were told about
        return Recorded(0, 0, unknown)
    if before is None:
        if _differ(connection, _OUTCOMES, outcomes) or _differ(connection, _LABELS, labels):
            return Recorded(0, 0, conflict=True)
        before = None if telling is None else claim_telling(connection, *telling)
    if telling is None or before is None:
        return None
    return Recorded(0, len(about)) if before == telling[1] else Recorded(0, 0, conflict=True)


def _known(connection: Connection, ids: list[str]) -> set[str]:
    """Return the ids that are predictions; PostgreSQL keeps them until the transaction ends."""
    found: set[str] = set()
    for start in range(0, len(ids), _PIECE):
        asked = select(predictions.c.id).where(predictions.c.id.in_(ids[start : start + _PIECE]))
        in_order = asked.order_by(predictions.c.id)  # so that erasers and this never wait in a ring
        found |= set(connection.execute(in_order.with_for_update(key_share=True)).scalars())
    return found


def _differ(connection: Connection, table: Table, told: Sequence[Any]) -> bool:
    """Tell whether an id is there already and says something else; the time does not count."""
    said = {one.id: _content(asdict(one)) for one in told}
    if any(said[one.id] != _content(asdict(one)) for one in told):
        return True  # the same id twice
    ids = list(said)
    for start in range(0, len(ids), _PIECE):
        columns = _LABEL if table is _LABELS else _OUTCOME
        asked = select(*columns).where(table.c.id.in_(ids[start : start + _PIECE]))
        for row in connection.execute(asked).mappings():
            if _content(dict(row)) != said[row["id"]]:
                return True
    return False


def _content(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "at"}


def _with_acts(connection: Connection, told: Sequence[Label]) -> list[dict[str, Any]]:
    """Return labels as rows, with what the predictions acted on."""
    table, acts = predictions.c, {}
    ids = list(dict.fromkeys(one.prediction for one in told))
    for start in range(0, len(ids), _PIECE):
        asked = select(table.id, table.at, table.acted_as, table.bundle).where(
            table.id.in_(ids[start : start + _PIECE]),
            table.decision == "act",
            table.acted_as.is_not(None),
            table.asked_point.is_(None),  # another point promises something else
        )
        acts.update({id: act for id, *act in connection.execute(asked)})
    names = ("acted_at", "acted_as", "bundle")
    none = (None, None, None)
    return [
        asdict(one) | dict(zip(names, acts.get(one.prediction, none), strict=True)) for one in told
    ]


def _audit(rows: Iterable[Any], most: int) -> list[AuditedCount]:
    """Count predictions, each of which comes with its latest label first."""
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


def _in_order(
    connection: Connection, table: Table, told: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return rows whose times follow each other, and what was told of their predictions before."""
    latest: dict[str, datetime] = {}
    ids = list(dict.fromkeys(one["prediction"] for one in told))
    for start in range(0, len(ids), _PIECE):
        about = table.c.prediction.in_(ids[start : start + _PIECE])
        asked = select(table.c.prediction, func.max(table.c.at)).where(about)
        found = connection.execute(asked.group_by(table.c.prediction))
        latest |= dict(found.all())
    rows: dict[str, dict[str, Any]] = {}
    for one in told:
        if one["id"] in rows:
            continue
        at, last = utc(one["at"]), latest.get(one["prediction"])
        if last is not None and at <= last:
            at = last + timedelta(microseconds=1)  # ids say nothing about the order
        latest[one["prediction"]] = at
        rows[one["id"]] = one | {"at": at}
    return list(rows.values())


def _insert(connection: Connection, table: Table, told: Sequence[dict[str, Any]]) -> int:
    """Write the rows whose id is not there, and return how many those were."""
    rows = {one["id"]: one for one in told}
    if not rows:
        return 0
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    ordered = [rows[id] for id in sorted(rows)]  # so that two writers never wait for each other
    written = insert(table).on_conflict_do_nothing(index_elements=["id"]).returning(table.c.id)
    return len(connection.execute(written, ordered).all())
