"""The tallies: how many predictions were made hour by hour, without looking at any of them."""

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

__all__ = ["TallyLog"]


class TallyLog:
    """Counts of predictions by hour, right at every moment: they are written with the rows.

    Hours are whole ones of UTC. Counts are from the hour of `since` on and before the hour of
    `until`; where `until` is None they have no end. With `bundle`, the hash of one, only its
    predictions are counted.

    Parameters
    ----------
    database : with the store's tables

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
        """Return how often each decision was made in each hour; hours without any are left out.

        Parameters
        ----------
        since, until, bundle : what is counted
        """
        rows = self._read(DECISION, (tallies.c.hour, tallies.c.name), since, until, bundle)
        return [HourCount(hour, name or None, n) for hour, name, n, _ in rows]

    def acted(
        self, since: datetime, until: datetime | None = None, *, bundle: str | None = None
    ) -> list[ActedCount]:
        """Return how often each class was acted on, with the sum of its probabilities.

        Where a request asked for a point of its own, what that did is left out: the points that
        decide otherwise promise nothing about it.

        Parameters
        ----------
        since, until, bundle : what is counted
        """
        rows = self._read(ACTED, (tallies.c.name,), since, until, bundle)
        return [ActedCount(name, n, parts / BILLION) for name, n, parts in rows]

    def scores(
        self, since: datetime, until: datetime | None = None, *, bundle: str | None = None
    ) -> list[int]:
        """Return how many scores lie in each of 20 equal bins; a score of 1 is in the last.

        Parameters
        ----------
        since, until, bundle : what is counted
        """
        counts = [0] * SCORE_BINS
        for name, n, _ in self._read(SCORE, (tallies.c.name,), since, until, bundle):
            counts[int(name)] = n
        return counts

    def labels(
        self, since: datetime, until: datetime | None = None, *, bundle: str | None = None
    ) -> list[tuple[str, int]]:
        """Return how often each class was the most probable one.

        Parameters
        ----------
        since, until, bundle : what is counted
        """
        rows = self._read(LABEL, (tallies.c.name,), since, until, bundle)
        return [(name, n) for name, n, _ in rows]

    def total(self) -> int:
        """Return how many predictions there are."""
        asked = select(func.coalesce(func.sum(tallies.c.n), 0)).where(tallies.c.kind == DECISION)
        with self._database.read() as connection:
            return int(connection.execute(asked).scalar_one())

    def _read(
        self,
        kind: str,
        by: tuple[ColumnElement[Any], ...],
        since: datetime,
        until: datetime | None,
        bundle: str | None,
    ) -> list[tuple[Any, ...]]:
        """Return the columns `by`, the count and the billionths of each group, sorted by Python.

        Databases sort texts in ways of their own.
        """
        table = tallies.c
        asked = select(*by, func.sum(table.n), func.sum(table.billionths)).where(
            table.kind == kind, table.hour >= floor_to_hour(since)
        )
        if until is not None:
            asked = asked.where(table.hour < floor_to_hour(until))
        if bundle is not None:
            asked = asked.where(table.bundle == bundle)
        with self._database.read() as connection:
            found = connection.execute(asked.group_by(*by)).all()
        return sorted((*key, int(n), int(parts)) for *key, n, parts in found)
