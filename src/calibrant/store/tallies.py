"""Hourly tallies of predictions, updated in the transaction that writes or erases predictions.

A prediction is counted per hour and bundle, once for its decision, its most probable class, the bin
of its score and, if the bundle's points acted, the class acted on. That is a few rows per hour,
whatever the number of predictions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, select
from sqlalchemy.dialects import postgresql

from calibrant.errors import StoreError
from calibrant.store.database import Database, as_json
from calibrant.store.records import ActedCount, HourCount, Prediction
from calibrant.store.schema import bundles, predictions, tallies, utc

DECISION, ACTED, LABEL, SCORE = "decision", "acted", "label", "score"
"""Kinds of tallies, named by decision ('' for none), class, class and number of the bin."""

SCORE_BINS = 20  # Equal bins of the score; a score of 1 is in the last

BILLION = 1_000_000_000

COUNTED = [
    predictions.c[name]
    for name in ("at", "bundle", "decision", "label", "acted_as", "score", "probs", "asked_point")
]
"""Columns of a prediction that are tallied."""

_COUNTED = attrgetter(*(column.name for column in COUNTED))

Cell = tuple[str, datetime, str, str]  # Kind, hour, bundle and name

_NAMES = [column.name for column in tallies.columns]
_COLUMNS = ", ".join(_NAMES)
_KEY = [column.name for column in tallies.primary_key.columns]
_ADDED = (
    f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET n = tallies.n + excluded.n, "
    "billionths = tallies.billionths + excluded.billionths"
)
_SQLITE = f"INSERT INTO tallies ({_COLUMNS}) VALUES ({', '.join('?' * len(_NAMES))}) {_ADDED}"
_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]
_TYPED = ", ".join(f"{each.name} {each.type.compile(_DIALECT)}" for each in tallies.columns)
# All writers lock the rows in one order, which prevents deadlocks.
_POSTGRESQL = (
    f"INSERT INTO tallies ({_COLUMNS}) SELECT {_COLUMNS} "
    f"FROM jsonb_to_recordset(%s) AS given({_TYPED}) ORDER BY {', '.join(_KEY)} {_ADDED}"
)
_EMPTY = delete(tallies).where(
    *(tallies.c[name] == bindparam(f"the_{name}") for name in _KEY), tallies.c.n == 0
)


class ClassPlaces:
    """Positions of classes among the probabilities of a bundle, cached per bundle."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, int]] = {}

    def positions(self, connection: Connection, bundle: str) -> dict[str, int]:
        """Return the position of each class name."""
        if bundle not in self._known:
            query = select(bundles.c.classes).where(bundles.c.hash == bundle)
            classes = connection.execute(query).scalar_one()
            self._known[bundle] = {name: position for position, name in enumerate(classes)}
        return self._known[bundle]


def score_bin(score: float) -> int:
    """Return the bin of a probability, from 0."""
    return min(int(score * SCORE_BINS), SCORE_BINS - 1)


def floor_to_hour(moment: datetime) -> datetime:
    """Return the beginning of the hour, in UTC."""
    return utc(moment).replace(minute=0, second=0, microsecond=0)


def add_to_tallies(connection: Connection, rows: Iterable[Prediction], places: ClassPlaces) -> None:
    """Count predictions that this transaction writes; call it last.

    Other writers of the same hour wait from here to the end of the transaction.
    """
    _write(connection, _cells(connection, map(_COUNTED, rows), places), 1)


def take_from_tallies(connection: Connection, rows: Iterable[Any]) -> int:
    """Subtract predictions that this transaction deletes, and return their number.

    Empty tallies are deleted, because they would reveal the erased predictions.
    """
    cells = _cells(connection, rows, ClassPlaces())
    _write(connection, cells, -1)
    if cells:
        empty = [
            {f"the_{name}": value for name, value in zip(_KEY, cell, strict=True)} for cell in cells
        ]
        connection.execute(_EMPTY, empty)
    return sum(n for (kind, *_), (n, _) in cells.items() if kind == DECISION)


def _cells(
    connection: Connection, rows: Iterable[Any], places: ClassPlaces
) -> dict[Cell, list[int]]:
    """Return the count and billionths of each tally of the rows."""
    cells: dict[Cell, list[int]] = {}
    for at, bundle, decision, label, acted_as, score, probs, asked_point in rows:
        hour = floor_to_hour(at)
        bin = str(score_bin(score))
        for kind, name in ((DECISION, decision or ""), (LABEL, label), (SCORE, bin)):
            cells.setdefault((kind, hour, bundle, name), [0, 0])[0] += 1
        # The promises do not cover a point that the request named.
        if acted_as is not None and asked_point is None:
            cell = cells.setdefault((ACTED, hour, bundle, acted_as), [0, 0])
            cell[0] += 1
            cell[1] += _billionths(acted_as, probs, places.positions(connection, bundle))
    return cells


def _billionths(acted_as: str, probs: Sequence[float], places: Mapping[str, int]) -> int:
    position = places.get(acted_as)
    if position is None or position >= len(probs):
        raise StoreError(
            f"a prediction acts as {acted_as[:40]!r}, but has no probability for this class: "
            "give the probabilities of all classes, in the order of the bundle."
        )
    return round(probs[position] * BILLION)


def _write(connection: Connection, cells: Mapping[Cell, Sequence[int]], sign: int) -> None:
    if not cells:
        return
    if connection.dialect.name == "postgresql":
        records = [
            dict(zip(_NAMES, (kind, hour.isoformat(), *rest, sign * n, sign * parts), strict=True))
            for (kind, hour, *rest), (n, parts) in cells.items()
        ]
        connection.exec_driver_sql(_POSTGRESQL, (as_json(records),))
    else:
        values = [
            (kind, hour.replace(tzinfo=None).isoformat(" ", "microseconds"), *rest,
             sign * n, sign * parts)
            for (kind, hour, *rest), (n, parts) in cells.items()
        ]  # fmt: skip
        connection.exec_driver_sql(_SQLITE, values)


class TallyLog:
    """Counts of predictions by hour, updated in the transaction that writes them.

    Hours are in UTC. Counts start at the hour of `since` and end before the hour of `until`, if
    given. With `bundle`, a hash, only its predictions are counted.

    Parameters
    ----------
    database : database with the tables of the store

    Examples
    --------
    >>> import tempfile
    >>> from datetime import UTC, datetime
    >>> from calibrant.store import Store
    >>> with Store.open(tempfile.mkdtemp() + "/calibrant.db") as store:
    ...     store.tallies.total(), sum(store.tallies.scores(datetime(2026, 1, 1, tzinfo=UTC)))
    (0, 0)
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def hours(
        self, since: datetime, until: datetime | None = None, *, bundle: str | None = None
    ) -> list[HourCount]:
        """Return the number of predictions per hour and decision, without empty hours.

        Parameters
        ----------
        since, until, bundle : predictions to count
        """
        rows = self._read_tallies(DECISION, (tallies.c.hour, tallies.c.name), since, until, bundle)
        return [HourCount(hour, name or None, n) for hour, name, n, _ in rows]

    def acted(
        self, since: datetime, until: datetime | None = None, *, bundle: str | None = None
    ) -> list[ActedCount]:
        """Return how often each class was acted on, with the sum of its probabilities.

        Requests that named an operating point are excluded, because the promises do not cover
        them.

        Parameters
        ----------
        since, until, bundle : predictions to count
        """
        rows = self._read_tallies(ACTED, (tallies.c.name,), since, until, bundle)
        return [ActedCount(name, n, parts / BILLION) for name, n, parts in rows]

    def scores(
        self, since: datetime, until: datetime | None = None, *, bundle: str | None = None
    ) -> list[int]:
        """Return the number of scores in each of 20 equal bins; a score of 1 is in the last.

        Parameters
        ----------
        since, until, bundle : predictions to count
        """
        counts = [0] * SCORE_BINS
        for name, n, _ in self._read_tallies(SCORE, (tallies.c.name,), since, until, bundle):
            counts[int(name)] = n
        return counts

    def labels(
        self, since: datetime, until: datetime | None = None, *, bundle: str | None = None
    ) -> list[tuple[str, int]]:
        """Return the number of predictions per most probable class.

        Parameters
        ----------
        since, until, bundle : predictions to count
        """
        rows = self._read_tallies(LABEL, (tallies.c.name,), since, until, bundle)
        return [(name, n) for name, n, _ in rows]

    def total(self) -> int:
        """Return the number of predictions."""
        query = select(func.coalesce(func.sum(tallies.c.n), 0)).where(tallies.c.kind == DECISION)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def _read_tallies(
        self,
        kind: str,
        by: tuple[ColumnElement[Any], ...],
        since: datetime,
        until: datetime | None,
        bundle: str | None,
    ) -> list[tuple[Any, ...]]:
        """Return the columns `by`, count and billionths per group.

        Sorted in Python, because databases collate text differently.
        """
        table = tallies.c
        query = select(*by, func.sum(table.n), func.sum(table.billionths)).where(
            table.kind == kind, table.hour >= floor_to_hour(since)
        )
        if until is not None:
            query = query.where(table.hour < floor_to_hour(until))
        if bundle is not None:
            query = query.where(table.bundle == bundle)
        with self._database.read() as connection:
            rows = connection.execute(query.group_by(*by)).all()
        return sorted((*key, int(n), int(parts)) for *key, n, parts in rows)
