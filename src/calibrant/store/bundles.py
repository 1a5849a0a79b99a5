"""The log of bundles: which ones have served, with their manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite

from calibrant.store.database import Database
from calibrant.store.records import BundleRecord
from calibrant.store.schema import bundles

__all__ = ["BundleLog"]

_FIELDS = (bundles.c.hash, bundles.c.name, bundles.c.classes, bundles.c.manifest, bundles.c.at)


class BundleLog:
    """All bundles that made predictions.

    Parameters
    ----------
    database : with the store's tables

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
        """Write down that a bundle serves; one that did before stays as it was written then.

        Parameters
        ----------
        hash, name, classes, manifest : what it is; the same hash is the same bundle
        at : when it was loaded
        """
        row = {"hash": hash, "name": name, "classes": list(classes), "manifest": dict(manifest)}
        insert = postgresql.insert if self._database.dialect == "postgresql" else sqlite.insert
        with self._database.write() as connection:
            connection.execute(insert(bundles).values(**row, at=at).on_conflict_do_nothing())

    def get(self, hash: str) -> BundleRecord | None:
        """Return the bundle of that hash, None where none has served."""
        with self._database.read() as connection:
            found = connection.execute(select(*_FIELDS).where(bundles.c.hash == hash)).first()
        return None if found is None else BundleRecord(*found)

    def all(self, *, manifests: bool = True) -> list[BundleRecord]:
        """Return all bundles, the one that served first at the head.

        Parameters
        ----------
        manifests : whether to read them too; without, each is empty, which is quick for many
        """
        columns = [c for c in _FIELDS if manifests or c is not bundles.c.manifest]
        asked = select(*columns).order_by(bundles.c.at, bundles.c.hash)
        with self._database.read() as connection:
            rows = connection.execute(asked).mappings()
            return [BundleRecord(**{"manifest": {}, **row}) for row in rows]
