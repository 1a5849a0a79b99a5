"""Log of served bundles and their manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite

from calibrant.store.database import Database
from calibrant.store.records import BundleRecord
from calibrant.store.schema import bundles

_FIELDS = (bundles.c.hash, bundles.c.name, bundles.c.classes, bundles.c.manifest, bundles.c.at)


class BundleLog:
    """All bundles that made predictions.

    Parameters
    ----------
    database : database with the tables of the store

    Examples
    --------
    >>> import tempfile
    >>> from datetime import UTC, datetime
    >>> from calibrant.store import Store
    >>> store = Store.open(tempfile.mkdtemp() + "/calibrant.db")
    >>> store.bundles.record(hash="3f0a", name="returns", classes=["no", "yes"],
    ...                      manifest={"format": 3}, at=datetime.now(UTC))
    >>> store.bundles.get("3f0a").classes
    ['no', 'yes']
    >>> store.close()
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(
        self,
        *,
        hash: str,
        name: str,
        classes: Sequence[str],
        manifest: Mapping[str, Any],
        at: datetime,
    ) -> None:
        """Record a served bundle; an earlier record of the same hash is kept.

        Parameters
        ----------
        hash, name, classes, manifest : identity and content of the bundle
        at : when it was loaded
        """
        row = {"hash": hash, "name": name, "classes": list(classes), "manifest": dict(manifest)}
        insert = postgresql.insert if self._database.dialect == "postgresql" else sqlite.insert
        with self._database.write() as connection:
            connection.execute(insert(bundles).values(**row, at=at).on_conflict_do_nothing())

    def get(self, hash: str) -> BundleRecord | None:
        """Return the bundle with this hash, or None."""
        with self._database.read() as connection:
            row = connection.execute(select(*_FIELDS).where(bundles.c.hash == hash)).first()
        return None if row is None else BundleRecord(*row)

    def all(self, *, manifests: bool = True) -> list[BundleRecord]:
        """Return all bundles, oldest first.

        Parameters
        ----------
        manifests : whether to read the manifests; they are empty otherwise
        """
        columns = [c for c in _FIELDS if manifests or c is not bundles.c.manifest]
        query = select(*columns).order_by(bundles.c.at, bundles.c.hash)
        with self._database.read() as connection:
            rows = connection.execute(query).mappings()
            return [BundleRecord(**{"manifest": {}, **row}) for row in rows]
