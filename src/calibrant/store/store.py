"""`Store`, the entry point to recorded predictions."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType

from sqlalchemy import delete, func, select
from sqlalchemy.dialects import postgresql, sqlite

from calibrant.store import erasure, export
from calibrant.store.audit_rows import AuditLog
from calibrant.store.bundles import BundleLog
from calibrant.store.database import Database
from calibrant.store.events import EventLog
from calibrant.store.keys import KeyRing
from calibrant.store.migration import check_version, migrate
from calibrant.store.outcomes import OutcomeLog
from calibrant.store.predictions import PredictionLog
from calibrant.store.records import Erased
from calibrant.store.schema import bundles, ended_visits, keys, labels, outcomes, predictions
from calibrant.store.tallies import TallyLog


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """Number of rows per table; revoked keys are not counted."""

    predictions: int
    labels: int
    outcomes: int
    bundles: int
    keys: int


def count(database: Database) -> StoreCounts:
    """Count the rows of a store in one snapshot."""
    queries = {
        table.name: select(func.count()).select_from(table)
        for table in (predictions, labels, outcomes, bundles, keys)
    }
    queries["keys"] = queries["keys"].where(keys.c.revoked.is_(None))
    with database.read(patient=True) as connection:
        return StoreCounts(
            **{name: connection.execute(query).scalar_one() for name, query in queries.items()}
        )


class VisitLog:
    """Sessions ended by logout; expired ones need no record."""

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


class Store:
    """Predictions, labels, outcomes, bundles and API keys in one database; thread-safe.

    The constructor does not connect; `prepare` creates or upgrades the tables, and `Store.open`
    does both. Transient errors (the database is down, locked or full) are `StoreUnavailable`,
    others `StoreError`.

    Parameters
    ----------
    url : a path or `sqlite:///path`, or `postgresql://user:password@host/database`

    Attributes
    ----------
    predictions, tallies, outcomes, audits, bundles, keys, events, visits : logs of the store

    Examples
    --------
    >>> import tempfile
    >>> with Store.open(tempfile.mkdtemp() + "/calibrant.db") as store:
    ...     store.predictions.count()
    0
    """

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self._database = Database(url)
        self.predictions = PredictionLog(self._database)
        self.tallies = TallyLog(self._database)
        self.outcomes = OutcomeLog(self._database)
        self.audits = AuditLog(self._database)
        self.bundles = BundleLog(self._database)
        self.keys = KeyRing(self._database)
        self.events = EventLog(self._database)
        self.visits = VisitLog(self._database)

    @classmethod
    def open(cls, url: str | os.PathLike[str]) -> Store:
        """Open a store and prepare its tables."""
        store = cls(url)
        try:
            store.prepare()
        except BaseException:
            store.close()
            raise
        return store

    @property
    def url(self) -> str:
        """Return the URL of the store, without its password."""
        return self._database.url

    def prepare(self) -> None:
        """Create or upgrade the tables; safe in concurrent processes."""
        migrate(self._database)

    def check(self) -> None:
        """Raise `StoreUnavailable` unless the store is reachable and up to date.

        After a failed write, another one is tested as well.
        """
        check_version(self._database)
        self._database.check_writes()

    def close(self) -> None:
        """Close the connections; the next use opens new ones."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def forget(self, unit: str, *, at: datetime | None = None) -> Erased:
        """Erase all predictions of a unit permanently, with their labels and outcomes.

        Parameters
        ----------
        unit : unit as named in requests
        at : recorded time of the erasure; now by default
        """
        return erasure.forget(self._database, unit, at or datetime.now(UTC))

    def prune(self, before: datetime) -> Erased:
        """Erase all predictions before a time, with their labels and outcomes."""
        return erasure.prune(self._database, before)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        use_case: str | None = None,
        labelled: bool = False,
        left_out: Counter[str] | None = None,
    ) -> int:
        """Write predictions with their latest label and their outcomes to a Parquet file.

        Parameters
        ----------
        path : output file
        since, until : time range, end excluded
        use_case : only predictions of this use case
        labelled : only predictions whose label is a class of their bundle
        left_out : with `labelled`, counts labels that are not classes of their bundle

        Returns
        -------
        int
            Number of predictions written.
        """
        return export.export(
            self._database, path, since, until, use_case=use_case, labelled=labelled,
            left_out=left_out
        )  # fmt: skip

    def counts(self) -> StoreCounts:
        """Count the rows of the store."""
        return count(self._database)

    def keyed_hash(self, data: bytes, *, purpose: bytes = b"") -> str:
        """Return a hash of `data` that cannot be reversed without the secret of this store.

        Parameters
        ----------
        data : bytes to hash
        purpose : at most 16 bytes; separates hashes of equal data
        """
        return self._database.keyed_hash(data, purpose=purpose)
