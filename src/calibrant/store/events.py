"""Append-only log of events: who changed what, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import func, insert, select

from calibrant.errors import InputError
from calibrant.store.database import Database
from calibrant.store.records import Event, new_id
from calibrant.store.schema import events

_FIELDS = [events.c[field.name] for field in fields(Event)]


class EventLog:
    """All changes to bundles and targets.

    Parameters
    ----------
    database : database with the tables of the store

    Examples
    --------
    >>> import tempfile
    >>> from calibrant.store import Store
    >>> store = Store.open(tempfile.mkdtemp() + "/calibrant.db")
    >>> done = store.events.add("point_saved", key=None, subject="returns",
    ...                         details={"reason": "fewer refunds"}, before="3f0a", after="77b2")
    >>> store.events.latest(subject="returns") == [done]
    True
    >>> store.close()
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        kind: str,
        *,
        key: str | None,
        subject: str,
        details: Mapping[str, Any],
        before: str | None = None,
        after: str | None = None,
    ) -> Event:
        """Record an event at the current time, and return it.

        Parameters
        ----------
        kind, key, subject, details, before, after : as in `Event`
        """
        now = datetime.now(UTC)
        event = Event(new_id(), now, kind, key, subject, before, after, dict(details))
        next_number = select(func.coalesce(func.max(events.c.number), 0) + 1).scalar_subquery()
        with self._database.write() as connection:
            if self._database.dialect == "postgresql":
                # One at a time, so that readers never miss an earlier number.
                connection.exec_driver_sql("LOCK TABLE events IN SHARE ROW EXCLUSIVE MODE")
            connection.execute(insert(events).values(number=next_number, **asdict(event)))
        return event

    def get(self, id: str) -> Event | None:
        """Return the event with this id, or None."""
        with self._database.read() as connection:
            row = connection.execute(select(*_FIELDS).where(events.c.id == id)).first()
        return None if row is None else Event(*row)

    def latest(
        self,
        *,
        kinds: Sequence[str] | None = None,
        subject: str | None = None,
        limit: int | None = 50,
    ) -> list[Event]:
        """Return the latest events, newest first.

        Parameters
        ----------
        kinds : only events of these kinds
        subject : only events of this subject
        limit : maximum number; None for all
        """
        if limit is not None and limit < 1:
            raise InputError(f"limit must be at least 1, got {limit}.")
        query = select(*_FIELDS).order_by(events.c.number.desc()).limit(limit)
        if kinds is not None:
            query = query.where(events.c.kind.in_(kinds))
        if subject is not None:
            query = query.where(events.c.subject == subject)
        with self._database.read() as connection:
            return [Event(*row) for row in connection.execute(query)]
