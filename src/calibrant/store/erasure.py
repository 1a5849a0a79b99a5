"""Forget a unit, and prune what is old: rows with all that hangs on them, and their traces."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import DBAPIError

from calibrant.errors import InputError, StoreUnavailable
from calibrant.store.database import Database
from calibrant.store.database_errors import guarded
from calibrant.store.outcome_requests import prune_tellings
from calibrant.store.records import Erased, new_id
from calibrant.store.schema import erasures, labels, outcomes, predictions
from calibrant.store.tally_updates import COUNTED, take_from_tallies

__all__ = ["forget", "prune"]

_CHUNK = 2_000
"""Predictions that are pruned in one transaction: others can write again after a fraction of a
second."""

_PIECE = 1_000  # ids a statement

_PAUSE = 0.15
"""Seconds between two of them on SQLite, where a writer that waits looks every 0.1 seconds."""


def forget(database: Database, unit: str, at: datetime) -> Erased:
    """Delete all predictions about a unit with their labels and outcomes, in one transaction.

    A keyed hash of the unit, the time and the counts stay in the table `erasures`. On SQLite the
    file is then written anew: freed bytes are overwritten when a row is deleted (secure_delete),
    but copies that were left where rows moved from page to page are not.
    """
    unit_hash = database.keyed_hash(_checked(unit).encode())
    ids = select(predictions.c.id).where(predictions.c.unit == unit)
    with database.write(patient=True) as connection:
        erased = _delete(connection, ids)
        row = _counts(erased) | {"id": new_id(), "at": at, "unit_hash": unit_hash}
        connection.execute(insert(erasures).values(row))
    if database.dialect == "sqlite":
        _rewrite(database)
    return erased


def prune(database: Database, before: datetime) -> Erased:
    """Delete all predictions made before a moment with their labels and outcomes, bit by bit.

    Requests go whole: a row that answers the same request as an older one goes with it. Others can
    write in between. Where it is interrupted, what was deleted until then stays
    deleted, and the table `erasures` has its counts.
    """
    erasure = {"id": new_id(), "at": datetime.now(UTC), "before": before}
    total = Erased(0, 0, 0)
    while True:
        with database.write(patient=True) as connection:
            rows = _oldest(connection, before)
            if rows:
                whole = predictions.c.request.in_(set(rows))
                total = _sum(total, _delete(connection, select(predictions.c.id).where(whole)))
                _note(connection, erasure, total)
            old = prune_tellings(connection, before, _CHUNK)
        if max(len(rows), old) < _CHUNK:
            break
        if database.dialect == "sqlite":
            time.sleep(_PAUSE)
    if database.dialect == "sqlite":
        _empty_log(database)
    return total


def _checked(unit: str) -> str:
    if not unit or unit.encode("utf-8", "replace").decode() != unit:
        raise InputError(f"a unit must be a text of at least one character, got {unit!r}.")
    return unit


def _oldest(connection: Connection, before: datetime) -> Sequence[str]:
    """Return the request of each of the oldest rows."""
    return connection.scalars(
        select(predictions.c.request)
        .where(predictions.c.at < before)
        .order_by(predictions.c.at)
        .limit(_CHUNK)
    ).all()


def _delete(connection: Connection, asked: Any) -> Erased:
    """Delete predictions with their counts, and first what hangs on them, so that it is told."""
    # Locked in one order, and no others are touched: no two that erase wait for each other.
    mine = select(predictions.c.id).where(predictions.c.id.in_(asked)).order_by(predictions.c.id)
    ids = connection.scalars(mine.with_for_update()).all()
    told = [
        sum(
            connection.execute(delete(table).where(table.c.prediction.in_(piece))).rowcount
            for piece in _pieces(ids)
        )
        for table in (labels, outcomes)
    ]
    return Erased(take_from_tallies(connection, _deleted(connection, ids)), *told)


def _deleted(connection: Connection, ids: Sequence[str]) -> Iterator[Any]:
    """Delete predictions, and return what was counted of them."""
    for piece in _pieces(ids):
        gone = delete(predictions).where(predictions.c.id.in_(piece)).returning(*COUNTED)
        yield from connection.execute(gone).all()


def _pieces(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + _PIECE] for start in range(0, len(ids), _PIECE))


def _note(connection: Connection, erasure: dict[str, Any], total: Erased) -> None:
    """Write the counts so far: once as a new row, then into that row."""
    mine = erasures.c.id == erasure["id"]
    found = connection.execute(update(erasures).where(mine).values(_counts(total)))
    if not found.rowcount:
        connection.execute(insert(erasures).values(erasure | _counts(total)))


def _sum(a: Erased, b: Erased) -> Erased:
    return Erased(a.predictions + b.predictions, a.labels + b.labels, a.outcomes + b.outcomes)


def _counts(erased: Erased) -> dict[str, Any]:
    return {
        "predictions": erased.predictions,
        "labels": erased.labels,
        "outcomes": erased.outcomes,
    }


def _rewrite(database: Database) -> None:
    """Write the file anew from the rows that are left."""
    with _after_deleting():
        _outside_transactions(database, "VACUUM")
    _empty_log(database)


def _empty_log(database: Database) -> None:
    """Bring the log (the file -wal), which still has what was deleted, to no length."""
    with _after_deleting():
        busy, *_ = _outside_transactions(database, "PRAGMA wal_checkpoint(TRUNCATE)")[0]
        if busy:
            raise StoreUnavailable(
                f"another process reads the store {database.name}: end that one first."
            )


@contextmanager
def _after_deleting() -> Iterator[None]:
    """Say what is done already where the rest cannot be done now."""
    try:
        yield
    except StoreUnavailable as error:
        raise StoreUnavailable(
            f"the rows are deleted, but their bytes may still be in the file: run this again to "
            f"clean it; now {error}"
        ) from None


def _outside_transactions(database: Database, statement: str) -> list[Any]:
    with guarded(database.name), database.engine.connect() as connection:
        plain = connection.connection.driver_connection  # the engine would begin a transaction
        assert isinstance(plain, sqlite3.Connection)
        try:
            return plain.execute(statement).fetchall()
        except sqlite3.Error as error:
            raise DBAPIError(statement, None, error) from None
