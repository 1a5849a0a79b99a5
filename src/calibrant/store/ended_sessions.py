"""Visits to the console that were ended by hand: a copy of their cookie opens nothing then."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite

from calibrant.store.database import Database
from calibrant.store.schema import ended_visits

__all__ = ["VisitLog"]


class VisitLog:
    """Visits that people ended by logging out. Those that end by themselves need no record.

    Parameters
    ----------
    database : with the store's tables

    Examples
    --------
    >>> import tempfile
    >>> from datetime import timedelta
    >>> from calibrant.store import Store
    >>> with Store.open(tempfile.mkdtemp() + "/calibrant.db") as store:
    ...     store.visits.end("5d41", expires=datetime.now(UTC) + timedelta(hours=8))
    ...     store.visits.ended("5d41"), store.visits.ended("77b2")
    (True, False)
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def end(self, id: str, *, expires: datetime) -> None:
        """Write down that a visit is over, and forget those that would be over by now anyway."""
        insert = postgresql.insert if self._database.dialect == "postgresql" else sqlite.insert
        over = delete(ended_visits).where(ended_visits.c.expires < datetime.now(UTC))
        row = insert(ended_visits).values(id=id, expires=expires).on_conflict_do_nothing()
        with self._database.write() as connection:
            connection.execute(over)
            connection.execute(row)

    def ended(self, id: str) -> bool:
        """Tell whether a visit was ended."""
        with self._database.read() as connection:
            asked = select(ended_visits.c.id).where(ended_visits.c.id == id)
            return connection.execute(asked).first() is not None
