"""Row counts of a store."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from calibrant.store.database import Database
from calibrant.store.schema import bundles, keys, labels, outcomes, predictions


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
