"""Hourly counts of predictions."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, func, select

from calibrant.store.database import Database
from calibrant.store.records import ActedCount, HourCount
from calibrant.store.schema import tallies
from calibrant.store.tally_updates import (
    ACTED,
    BILLION,
    DECISION,
    LABEL,
    SCORE,
    SCORE_BINS,
    floor_to_hour,
)


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
