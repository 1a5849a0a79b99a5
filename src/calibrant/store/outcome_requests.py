"""Which requests have told labels and outcomes: each tells once, and the same key tells the same.

Of a request the store keeps two keyed hashes and the time. Neither names a unit or a prediction, so
that nothing of it has to go when a unit is forgotten; `prune` takes what is old.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from calibrant.errors import StoreUnavailable
from calibrant.store.schema import tellings

__all__ = ["claim_telling", "prune_tellings", "told_before"]


def told_before(connection: Connection, request: str) -> str | None:
    """Return the hash of what a request told, None where it has told nothing yet."""
    asked = select(tellings.c.hash).where(tellings.c.request == request)
    return connection.execute(asked).scalar_one_or_none()


def claim_telling(connection: Connection, request: str, hash: str) -> str | None:
    """Record a request; if its id is already recorded, return the hash of the earlier one."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    row = {"request": request, "hash": hash, "at": datetime.now(UTC)}
    claim = insert(tellings).values(row).on_conflict_do_nothing(index_elements=["request"])
    if connection.execute(claim.returning(tellings.c.request)).first() is not None:
        return None
    found = told_before(connection, request)
    if found is None:
        raise StoreUnavailable("what this request told was erased meanwhile: send it again.")
    return found


def prune_tellings(connection: Connection, before: datetime, limit: int) -> int:
    """Delete up to `limit` of those made before a moment, and return how many they were."""
    oldest = select(tellings.c.request).where(tellings.c.at < before).limit(limit)
    return connection.execute(delete(tellings).where(tellings.c.request.in_(oldest))).rowcount
