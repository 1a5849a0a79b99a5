"""The store: one object for all that is kept about predictions."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime
from types import TracebackType

from calibrant.store import erasure, export
from calibrant.store.audit_rows import AuditLog
from calibrant.store.bundles import BundleLog
from calibrant.store.counts import Counts, count
from calibrant.store.database import Database
from calibrant.store.ended_sessions import VisitLog
from calibrant.store.events import EventLog
from calibrant.store.keys import KeyRing
from calibrant.store.migration import check_version, migrate
from calibrant.store.outcomes import OutcomeLog
from calibrant.store.predictions import PredictionLog
from calibrant.store.records import Erased
from calibrant.store.tallies import TallyLog

__all__ = ["Store"]


class Store:
    """Predictions, labels, outcomes, bundles and keys in one database; threads may share it.

    Making one touches nothing: `prepare` creates the tables or brings them up to date, and
    `Store.open` does both. Errors are StoreUnavailable where the same may succeed a moment later
    (the database is away, locked or full), else StoreError.

    Parameters
    ----------
    url : a path or `sqlite:///path`, or `postgresql://user:password@host/database`

    Attributes
    ----------
    predictions, tallies, outcomes, audits, bundles, keys, events, visits : what is kept, each
        with its own verbs

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
        """Return a store that is ready for use."""
        store = cls(url)
        try:
            store.prepare()
        except BaseException:
            store.close()
            raise
        return store

    @property
    def url(self) -> str:
        """Return where the store is, without its password."""
        return self._database.url

    def prepare(self) -> None:
        """Create the tables or bring them up to date; several processes may do it at once."""
        migrate(self._database)

    def check(self) -> None:
        """Raise StoreUnavailable unless the store can be reached and has the right tables.

        Where the last write failed, a small one is tried as well.
        """
        check_version(self._database)
        self._database.check_writes()

    def close(self) -> None:
        """Close the connections; a store that is used again opens new ones."""
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
        """Erase all that is kept about a unit, for good.

        Parameters
        ----------
        unit : as it was given with the requests
        at : the moment that is written down for it; now by default
        """
        return erasure.forget(self._database, unit, at or datetime.now(UTC))

    def prune(self, before: datetime) -> Erased:
        """Erase all predictions made before a moment, with their labels and outcomes."""
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
        path : the file to be
        since, until : from this moment on; before this moment
        use_case : only predictions for it
        labelled : only predictions whose true class is known, and one of their bundle
        left_out : with `labelled`, counts the labels of rows that are left out because their
            bundle has no such class

        Returns
        -------
        int
            How many predictions were written.
        """
        return export.export(
            self._database, path, since, until, use_case=use_case, labelled=labelled,
            left_out=left_out
        )  # fmt: skip

    def counts(self) -> Counts:
        """Count what the store holds."""
        return count(self._database)

    def keyed_hash(self, data: bytes, *, purpose: bytes = b"") -> str:
        """Return a hash of `data` that cannot be guessed back without this store's secret.

        Parameters
        ----------
        data : to be hashed
        purpose : at most 16 bytes; the same data have other hashes for other purposes
        """
        return self._database.keyed_hash(data, purpose=purpose)
