"""How much a store holds."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from calibrant.store.database import Database
from calibrant.store.schema import bundles, keys, labels, outcomes, predictions

__all__ = ["Counts", "count"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of each kind; `keys` are those that are not revoked."""

    predictions: int
    labels: int
    outcomes: int
    bundles: int
    keys: int


def count(database: Database) -> Counts:
    """Count the rows of a store, all at the same moment."""
    asked = {
        table.name: select(func.count()).select_from(table)
        for table in (predictions, labels, outcomes, bundles, keys)
    }
    asked["keys"] = asked["keys"].where(keys.c.revoked.is_(None))
    with database.read(patient=True) as connection:
        return Counts(
            **{name: connection.execute(query).scalar_one() for name, query in asked.items()}
        )
