"""Idempotency of requests that report labels and outcomes.

The store keeps two keyed hashes and the time of each request. They identify neither a unit nor a
prediction, so that forgetting a unit does not affect them; `prune` deletes old ones.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from calibrant.errors import StoreUnavailable
from calibrant.store.schema import outcome_requests


def find_request_hash(connection: Connection, request: str) -> str | None:
    """Return the content hash of a recorded request, or None."""
    query = select(outcome_requests.c.hash).where(outcome_requests.c.request == request)
    return connection.execute(query).scalar_one_or_none()


def claim_request(connection: Connection, request: str, hash: str) -> str | None:
    """Record a request; if its id is already recorded, return the hash of the earlier one."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    row = {"request": request, "hash": hash, "at": datetime.now(UTC)}
    claim = insert(outcome_requests).values(row).on_conflict_do_nothing(index_elements=["request"])
    if connection.execute(claim.returning(outcome_requests.c.request)).first() is not None:
        return None
    earlier = find_request_hash(connection, request)
    if earlier is None:
        raise StoreUnavailable("this request was erased concurrently: send it again.")
    return earlier


def prune_requests(connection: Connection, before: datetime, limit: int) -> int:
    """Delete up to `limit` requests before a time, and return their number."""
    oldest = select(outcome_requests.c.request).where(outcome_requests.c.at < before).limit(limit)
    return connection.execute(
        delete(outcome_requests).where(outcome_requests.c.request.in_(oldest))
    ).rowcount
