"""The log of events: who changed what, and when. Events are added, and never changed or erased."""

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

__all__ = ["EventLog"]

_FIELDS = [events.c[field.name] for field in fields(Event)]


class EventLog:
    """All that was done to the bundles and targets that decide.

    Parameters
    ----------
    database : with the store's tables

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
        """Write down what is done now, and return it.

        Parameters
        ----------
        kind, key, subject, details, before, after : as in `Event`
        """
        now = datetime.now(UTC)
        event = Event(new_id(), now, kind, key, subject, before, after, dict(details))
        following = select(func.coalesce(func.max(events.c.number), 0) + 1).scalar_subquery()
        with self._database.write() as connection:
            if self._database.dialect == "postgresql":
                # One at a time: an event that was read is never preceded by one that was not.
                connection.exec_driver_sql("LOCK TABLE events IN SHARE ROW EXCLUSIVE MODE")
            connection.execute(insert(events).values(number=following, **asdict(event)))
        return event

    def get(self, id: str) -> Event | None:
        """Return the event of that id, None where there is none."""
        with self._database.read() as connection:
            found = connection.execute(select(*_FIELDS).where(events.c.id == id)).first()
        return None if found is None else Event(*found)

    def latest(
        self,
        *,
        kinds: Sequence[str] | None = None,
        subject: str | None = None,
        limit: int | None = 50,
    ) -> list[Event]:
        """Return the events that were added last, newest first.

        Parameters
        ----------
        kinds : only events of these kinds
        subject : only events about this
        limit : how many, at most; None for all
        """
        if limit is not None and limit < 1:
            raise InputError(f"limit must be at least 1, got {limit}.")
        asked = select(*_FIELDS).order_by(events.c.number.desc()).limit(limit)
        if kinds is not None:
            asked = asked.where(events.c.kind.in_(kinds))
        if subject is not None:
            asked = asked.where(events.c.subject == subject)
        with self._database.read() as connection:
            return [Event(*row) for row in connection.execute(asked)]
