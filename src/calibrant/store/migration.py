"""Schema migrations, applied with Alembic."""

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
from calibrant.store.database_errors import translate_errors
from calibrant.store.schema import metadata, settings

VERSION_TABLE = "schema_version"  # Table with the schema version

_FOLDER = Path(__file__).parent / "migrations"
_LOCK = threading.Lock()  # Alembic's `op` is global to the process
_ADVISORY_LOCK = 0x63616C69627261  # "calibra"
_MIGRATION_WAIT = 60  # seconds to wait for another migration
_WAL_WAIT = 5.0


def migrate(database: Database) -> None:
    """Create or upgrade the tables; safe in concurrent processes."""
    database.create_file()
    with _LOCK:
        with database.read() as connection:
            ready = _version(connection) == _newest()
        if not ready:
            with database.write(patient=True) as connection:
                _wait_for_others(connection)
                _upgrade(connection, database.name)
    if database.dialect == "sqlite":
        _keep_write_ahead_log(database)


def check_version(database: Database) -> None:
    """Raise `StoreUnavailable` unless the database is reachable and up to date."""
    path = database.address.path
    if path is not None and not path.is_file():  # a removed file stays readable while open
        raise StoreUnavailable(f"the store {database.name} was removed: restore the file.")
    with database.read() as connection:
        version = _version(connection)
    if version != _newest():
        raise StoreUnavailable(
            f"the store {database.name} has version {version or 'none'} of its tables, but this "
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
    """Wait for concurrent migrations; on SQLite the transaction already does."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_MIGRATION_WAIT}s'")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")


def _upgrade(connection: Connection, name: str) -> None:
    """Apply the missing migrations in the open transaction."""
    context = _context(connection)
    version = context.get_current_revision()
    if version is None:
        _refuse_foreign(connection, name)
    scripts = _scripts(_FOLDER)
    try:
        steps = list(scripts.iterate_revisions("head", version or "base"))
    except RevisionError:
        raise StoreError(
            f"the store {name} has version {version} of its tables, newer than this version of "
            f"Calibrant knows ({_newest()}): upgrade calibrant."
        ) from None
    with Operations.context(context):
        for step in reversed(steps):
            step.module.upgrade()
            context.stamp(scripts, step.revision)
    if version is None:
        connection.execute(insert(settings).values(name=SECRET, value=secrets.token_hex(32)))


def _refuse_foreign(connection: Connection, name: str) -> None:
    """Refuse the database of another program."""
    tables = set(inspect(connection).get_table_names())
    if connection.dialect.name == "postgresql":  # may be shared by several programs
        tables &= set(metadata.tables)
    if tables:
        raise StoreError(
            f"the store {name} contains the table '{min(tables)}' of another program: name a new "
            "file or an empty database."
        )


def _keep_write_ahead_log(database: Database) -> None:
    """Enable the write-ahead log, so that readers do not block the writer."""
    until = time.monotonic() + _WAL_WAIT
    with translate_errors(database.name), database.engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        while True:
            try:
                (mode,) = driver.execute("PRAGMA journal_mode = WAL").fetchone()
                break
            except sqlite3.OperationalError as error:  # SQLite does not wait for this lock
                if "locked" not in str(error) or time.monotonic() > until:
                    raise StoreUnavailable(
                        f"the store {database.name} cannot be prepared: {error}: try again."
                    ) from None
                time.sleep(0.02)
    if mode != "wal":
        raise StoreError(
            f"the store {database.name} cannot use a write-ahead log on this file system: "
            "move it to a local disk."
        )
