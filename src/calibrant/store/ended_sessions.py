"""Console sessions that were ended by logout, whose cookies are refused."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite

from calibrant.store.database import Database
from calibrant.store.schema import ended_visits

__all__ = ["VisitLog"]


class VisitLog:
    """Sessions ended by logout; expired ones need no record.

    Parameters
    ----------
    database : database with the tables of the store

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
        """Record the end of a session, and delete expired records."""
        insert = postgresql.insert if self._database.dialect == "postgresql" else sqlite.insert
        expired = delete(ended_visits).where(ended_visits.c.expires < datetime.now(UTC))
        row = insert(ended_visits).values(id=id, expires=expires).on_conflict_do_nothing()
        with self._database.write() as connection:
            connection.execute(expired)
            connection.execute(row)

    def ended(self, id: str) -> bool:
        """Whether a session was ended."""
        with self._database.read() as connection:
            query = select(ended_visits.c.id).where(ended_visits.c.id == id)
            return connection.execute(query).first() is not None
