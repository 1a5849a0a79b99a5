"""Brings a database to the tables of this version, from none or from older ones."""

from __future__ import annotations

import secrets
import sqlite3
import threading
import time
from functools import cache
from pathlib import Path

from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from alembic.script.revision import RevisionError
from sqlalchemy import Connection, insert, inspect

from calibrant.errors import StoreError, StoreUnavailable
from calibrant.store.database import SECRET, Database
from calibrant.store.database_errors import guarded
from calibrant.store.schema import metadata, settings

__all__ = ["VERSION_TABLE", "check_version", "migrate"]

VERSION_TABLE = "schema_version"
"""Where the version of the tables is kept."""

_FOLDER = Path(__file__).parent / "migrations"
_ONE_AT_A_TIME = threading.Lock()  # Alembic's `op` is one for the whole process
_ADVISORY_LOCK = 0x63616C69627261  # "calibra": what processes on PostgreSQL wait for
_MIGRATION_WAIT = 60  # seconds for another process that migrates
_WAL_WAIT = 5.0


def migrate(database: Database) -> None:
    """Create the tables or bring them up to date; safe when several processes do it at once."""
    database.create_file()
    with _ONE_AT_A_TIME:
        with database.read() as connection:
            ready = _version(connection) == _newest()
        if not ready:
            with database.write(patient=True) as connection:
                _wait_for_others(connection)
                _upgrade(connection, database.name)
    if database.dialect == "sqlite":
        _keep_write_ahead_log(database)


def check_version(database: Database) -> None:
    """Raise StoreUnavailable unless the database can be reached and has this version's tables."""
    path = database.address.path
    if path is not None and not path.is_file():  # an open file can be read after it was removed
        raise StoreUnavailable(f"the store {database.name} is gone: put the file back.")
    with database.read() as connection:
        found = _version(connection)
    if found != _newest():
        raise StoreUnavailable(
            f"the store {database.name} has version {found or 'none'} of its tables, but this "
            f"version of Calibrant works with {_newest()}: run the newest calibrant everywhere."
        )


@cache
def _scripts(folder: Path) -> ScriptDirectory:
    return ScriptDirectory(str(folder))


def _newest() -> str:
    head = _scripts(_FOLDER).get_current_head()
    assert head is not None
    return head


def _context(connection: Connection) -> MigrationContext:
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})


def _version(connection: Connection) -> str | None:
    return _context(connection).get_current_revision()


def _wait_for_others(connection: Connection) -> None:
    """Let one process at a time in; on SQLite the transaction has seen to it already."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_MIGRATION_WAIT}s'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")


def _upgrade(connection: Connection, name: str) -> None:
    """Apply what is missing, in the transaction that is open."""
    context = _context(connection)
    found = context.get_current_revision()
    if found is None:
        _refuse_foreign(connection, name)
    scripts = _scripts(_FOLDER)
    try:
        steps = list(scripts.iterate_revisions("head", found or "base"))
    except RevisionError:
        raise StoreError(
            f"the store {name} has version {found} of its tables, which is newer than this version "
            f"of Calibrant knows ({_newest()}): upgrade calibrant."
        ) from None
    with Operations.context(context):
        for step in reversed(steps):
            step.module.upgrade()
            context.stamp(scripts, step.revision)
    if found is None:
        connection.execute(insert(settings).values(name=SECRET, value=secrets.token_hex(32)))


def _refuse_foreign(connection: Connection, name: str) -> None:
    """Leave the database of another program alone."""
    there = set(inspect(connection).get_table_names())
    if connection.dialect.name == "postgresql":  # where several programs may share one
        there &= set(metadata.tables)
    if there:
        raise StoreError(
            f"the store {name} holds the table '{min(there)}' of another program: name a new file "
            "or an empty database."
        )


def _keep_write_ahead_log(database: Database) -> None:
    """Let readers and a writer work at the same time; the file remembers it."""
    until = time.monotonic() + _WAL_WAIT
    with guarded(database.name), database.engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        while True:
            try:
                (mode,) = driver.execute("PRAGMA journal_mode = WAL").fetchone()
                break
            except sqlite3.OperationalError as error:  # this lock is not waited for by SQLite
                if "locked" not in str(error) or time.monotonic() > until:
                    raise StoreUnavailable(
                        f"the store {database.name} cannot be prepared: {error}: try again."
                    ) from None
                time.sleep(0.02)
    if mode != "wal":
        raise StoreError(
            f"the store {database.name} cannot keep a write-ahead log where it is: put it on a "
            "local disk."
        )
