"""Erasure of a unit, and pruning of old predictions, with all dependent rows."""

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
from calibrant.store.database_errors import translate_errors
from calibrant.store.outcomes import prune_requests
from calibrant.store.records import Erased, new_id
from calibrant.store.schema import erasures, labels, outcomes, predictions
from calibrant.store.tallies import COUNTED, take_from_tallies

_CHUNK = 2_000  # Predictions pruned per transaction, so that other writers wait briefly

_PIECE = 1_000  # ids per statement

_PAUSE = 0.15  # Pause between transactions on SQLite, whose waiting writers poll every 0.1 seconds


def forget(database: Database, unit: str, at: datetime) -> Erased:
    """Delete all predictions of a unit with their labels and outcomes, in one transaction.

    The table `erasures` keeps a keyed hash of the unit, the time and the counts. SQLite then
    rewrites the file: secure_delete overwrites deleted rows, but not copies on other pages.
    """
    unit_hash = database.keyed_hash(_check_unit(unit).encode())
    ids = select(predictions.c.id).where(predictions.c.unit == unit)
    with database.write(patient=True) as connection:
        erased = _delete(connection, ids)
        row = _counts_to_dict(erased) | {"id": new_id(), "at": at, "unit_hash": unit_hash}
        connection.execute(insert(erasures).values(row))
    if database.dialect == "sqlite":
        _rewrite(database)
    return erased


def prune(database: Database, before: datetime) -> Erased:
    """Delete all predictions before a time with their labels and outcomes, in chunks.

    Requests are deleted as a whole. Others can write in between. After an interruption, finished
    chunks remain deleted and are counted in the table `erasures`.
    """
    erasure = {"id": new_id(), "at": datetime.now(UTC), "before": before}
    total = Erased(0, 0, 0)
    while True:
        with database.write(patient=True) as connection:
            rows = _oldest(connection, before)
            if rows:
                whole = predictions.c.request.in_(set(rows))
                total = _sum(total, _delete(connection, select(predictions.c.id).where(whole)))
                _record_progress(connection, erasure, total)
            old = prune_requests(connection, before, _CHUNK)
        if max(len(rows), old) < _CHUNK:
            break
        if database.dialect == "sqlite":
            time.sleep(_PAUSE)
    if database.dialect == "sqlite":
        _empty_log(database)
    return total


def _check_unit(unit: str) -> str:
    if not unit or unit.encode("utf-8", "replace").decode() != unit:
        raise InputError(f"a unit must be non-empty text, got {unit!r}.")
    return unit


def _oldest(connection: Connection, before: datetime) -> Sequence[str]:
    """Return the requests of the oldest rows."""
    return connection.scalars(
        select(predictions.c.request)
        .where(predictions.c.at < before)
        .order_by(predictions.c.at)
        .limit(_CHUNK)
    ).all()


def _delete(connection: Connection, query: Any) -> Erased:
    """Delete predictions and their counts, dependent rows first, so that they are counted."""
    # Locked in a fixed order, so that concurrent erasures cannot deadlock.
    locked = select(predictions.c.id).where(predictions.c.id.in_(query)).order_by(predictions.c.id)
    ids = connection.scalars(locked.with_for_update()).all()
    counts = [
        sum(
            connection.execute(delete(table).where(table.c.prediction.in_(piece))).rowcount
            for piece in _pieces(ids)
        )
        for table in (labels, outcomes)
    ]
    return Erased(take_from_tallies(connection, _delete_predictions(connection, ids)), *counts)


def _delete_predictions(connection: Connection, ids: Sequence[str]) -> Iterator[Any]:
    """Delete predictions, and yield their tallied columns."""
    for piece in _pieces(ids):
        gone = delete(predictions).where(predictions.c.id.in_(piece)).returning(*COUNTED)
        yield from connection.execute(gone).all()


def _pieces(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + _PIECE] for start in range(0, len(ids), _PIECE))


def _record_progress(connection: Connection, erasure: dict[str, Any], total: Erased) -> None:
    """Insert or update the row with the counts so far."""
    own_row = erasures.c.id == erasure["id"]
    updated = connection.execute(update(erasures).where(own_row).values(_counts_to_dict(total)))
    if not updated.rowcount:
        connection.execute(insert(erasures).values(erasure | _counts_to_dict(total)))


def _sum(a: Erased, b: Erased) -> Erased:
    return Erased(a.predictions + b.predictions, a.labels + b.labels, a.outcomes + b.outcomes)


def _counts_to_dict(erased: Erased) -> dict[str, Any]:
    return {
        "predictions": erased.predictions,
        "labels": erased.labels,
        "outcomes": erased.outcomes,
    }


def _rewrite(database: Database) -> None:
    """Rewrite the file from the remaining rows."""
    with _after_deleting():
        _outside_transactions(database, "VACUUM")
    _empty_log(database)


def _empty_log(database: Database) -> None:
    """Truncate the write-ahead log, which still contains deleted rows."""
    with _after_deleting():
        busy, *_ = _outside_transactions(database, "PRAGMA wal_checkpoint(TRUNCATE)")[0]
        if busy:
            raise StoreUnavailable(
                f"another process reads the store {database.name}: stop it first."
            )


@contextmanager
def _after_deleting() -> Iterator[None]:
    """Explain in the error that the rows are already deleted."""
    try:
        yield
    except StoreUnavailable as error:
        raise StoreUnavailable(
            f"the rows are deleted, but their bytes may still be in the file: run this again to "
            f"clean it; now {error}"
        ) from None


def _outside_transactions(database: Database, statement: str) -> list[Any]:
    with translate_errors(database.name), database.engine.connect() as connection:
        driver = connection.connection.driver_connection  # bypasses the engine's transaction
        assert isinstance(driver, sqlite3.Connection)
        try:
            return driver.execute(statement).fetchall()
        except sqlite3.Error as error:
            raise DBAPIError(statement, None, error) from None
