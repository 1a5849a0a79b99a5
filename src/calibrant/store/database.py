"""The database of a store: its connections, its transactions and its secret."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic_core import to_json
from sqlalchemy import Connection, Engine, create_engine, delete, event, insert, select
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.pool import QueuePool

from calibrant.errors import StoreError, StoreUnavailable, StoreUnfit
from calibrant.store.address import Address, read_address
from calibrant.store.database_errors import guarded
from calibrant.store.open_file import is_at_its_path, remember
from calibrant.store.schema import settings

__all__ = ["SECRET", "Database", "as_json"]

SECRET = "secret"
"""Name of the setting that keyed hashes are made with."""

_PROBE = "probe-"  # settings that are written to see whether writing works
_PROBE_SIZE = 500_000

_LOCK_WAIT = 5.0  # seconds that a SQLite transaction waits for others
_CONNECT_WAIT = 3  # seconds for a connection to PostgreSQL
_STATEMENT_WAIT = 10  # seconds for a statement of PostgreSQL
_RECYCLE = 300  # seconds after which a connection to PostgreSQL is made anew
_READ_ONLY = "25006"  # PostgreSQL's code for a write to a server that takes none
_POOL = {"pool_size": 5, "max_overflow": 10, "pool_timeout": 5, "hide_parameters": True}
_WRITES, _SECRET = "calibrant_writes", "calibrant_secret"
_NUL = "a text with a NUL character cannot be stored: take it out."


class Database:
    """A SQLite or PostgreSQL database; making one touches nothing, and threads may share it.

    Parameters
    ----------
    address : a path, `sqlite:///path` or `postgresql://user:password@host/database`

    Examples
    --------
    >>> import tempfile
    >>> from sqlalchemy import text
    >>> database = Database(tempfile.mkdtemp() + "/calibrant.db")
    >>> database.create_file()
    >>> with database.read() as connection:
    ...     connection.execute(text("SELECT 1")).scalar_one()
    1
    >>> database.close()
    """

    def __init__(self, address: str | os.PathLike[str]) -> None:
        self.address: Address = read_address(address)
        self.engine: Engine = _engine(self.address)
        self._secret: bytes | None = None
        self._hashed_with: bytes | None = None
        self._refuses_writes = False
        event.listen(self.engine, "connect", self._forget_secret)

    @property
    def dialect(self) -> str:
        """Return "sqlite" or "postgresql"."""
        return self.address.dialect

    @property
    def url(self) -> str:
        """Return the URL without its password."""
        return self.address.shown

    @property
    def name(self) -> str:
        """Return what errors call this database."""
        return self.address.name

    @contextmanager
    def read(self, *, patient: bool = False) -> Iterator[Connection]:
        """Lend a connection in a transaction that sees one moment and changes nothing."""
        with guarded(self.name), self.engine.connect() as connection:
            self._check_file(connection)
            if self.dialect == "postgresql":
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with self._patience(connection, patient), connection.begin():
                self._lift_limit(connection, patient)
                yield connection

    @contextmanager
    def write(self, *, patient: bool = False) -> Iterator[Connection]:
        """Lend a connection in a transaction that is committed at the end, or leaves nothing.

        On SQLite there is one writer at a time; others wait for it, up to 5 seconds.
        """
        try:
            with guarded(self.name), self.engine.connect() as connection:
                self._check_file(connection)
                connection = connection.execution_options(**{_WRITES: True})
                with self._patience(connection, patient), connection.begin():
                    self._lift_limit(connection, patient)
                    yield connection
                self._check_file(connection)  # or what was written is not in the store
        except StoreUnavailable:
            self._refuses_writes = True
            raise

    def check_writes(self) -> None:
        """Where a write has failed, try another: raise StoreUnavailable where it fails too.

        A full disk and a lock that others hold are not seen by reading. That a smaller write went
        well meanwhile tells nothing of the next.
        """
        if not self._refuses_writes:
            return
        self._refuses_writes = False  # unless this fails, or another meanwhile
        # As large as many predictions, and random: it takes room, however the database packs it.
        probe = {"name": f"{_PROBE}{secrets.token_hex(8)}", "value": secrets.token_hex(_PROBE_SIZE)}
        with self.write() as connection:
            connection.execute(insert(settings).values(**probe))
        with self.write() as connection:
            connection.execute(delete(settings).where(settings.c.name.startswith(_PROBE)))

    def keyed_hash(self, data: bytes, *, purpose: bytes = b"") -> str:
        """Return the BLAKE2b of `data` under this store's secret, as 64 hex digits.

        A short text, like a customer's number, cannot be guessed back from it without the
        database. Equal texts have equal hashes within a store.
        """
        secret = self._secret
        if secret is None:
            with self.read() as connection:
                secret = self._secret_of(connection)
            self._secret = self._hashed_with = secret
        return hashlib.blake2b(data, key=secret, digest_size=32, person=purpose).hexdigest()

    def check_secret(self, connection: Connection) -> None:
        """Refuse to write hashes into another store than the one they were made for.

        A new connection may lead to another store than the last one did: a file that was put in
        the place of the old one, or a server that was restored.
        """
        if self._hashed_with is None or self._hashed_with == self._secret_of(connection):
            return
        self._secret = self._hashed_with = None
        raise StoreUnavailable(
            f"the store {self.name} was replaced by another one meanwhile: try again."
        )

    def create_file(self) -> None:
        """Make an empty file for SQLite, where there is none; only its owner may read it."""
        path = self.address.path
        if path is None or path.is_file():
            return
        if path.is_dir():
            raise StoreError(f"the store {self.name} is a folder: name a file in it.")
        if not path.parent.is_dir():
            raise StoreError(
                f"the store {self.name}: the folder {path.parent} does not exist: create it first."
            )
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise StoreUnavailable(
                f"the store {self.name} cannot be created: {error.strerror}: choose another place."
            ) from None

    def close(self) -> None:
        """Close all connections that are not in use; the next use opens new ones."""
        self.engine.dispose()
        self._secret = None

    def _forget_secret(self, _connection: Any, _record: Any) -> None:
        self._secret = None

    def _secret_of(self, connection: Connection) -> bytes:
        """Return the secret of the store behind a connection, which is read once for each."""
        if _SECRET not in connection.info:
            found = connection.execute(
                select(settings.c.value).where(settings.c.name == SECRET)
            ).scalar_one_or_none()
            if found is None:
                raise StoreUnfit(f"the store {self.name} is not ready: open it with Store.open.")
            connection.info[_SECRET] = bytes.fromhex(found)
        secret: bytes = connection.info[_SECRET]
        return secret

    @contextmanager
    def _patience(self, connection: Connection, patient: bool) -> Iterator[None]:
        """Let a connection wait for any time, and not for long again when the pool gets it back."""
        if self.dialect != "postgresql" or not patient:
            yield
            return
        driver: Any = connection.connection.driver_connection
        driver.limit = None
        try:
            yield
        finally:
            driver.limit = type(driver).limit

    def _lift_limit(self, connection: Connection, patient: bool) -> None:
        if self.dialect == "postgresql" and patient:
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")

    def _check_file(self, connection: Connection) -> None:
        """Raise StoreUnavailable where SQLite's file was taken away; the next use opens anew."""
        path = self.address.path
        if path is None or is_at_its_path(connection.info, path):
            return
        connection.invalidate()
        self.close()
        raise StoreUnavailable(
            f"the store {self.name} was removed or replaced while it was in use: put the file back."
        )


def as_json(value: Any) -> str:
    r"""Return `value` as JSON that both databases take.

    Examples
    --------
    >>> as_json({"text": "größer"})
    '{"text":"größer"}'
    >>> as_json([float("nan")])
    Traceback (most recent call last):
    ...
    calibrant.errors.StoreError: the store can only hold what JSON can: Out of range float ...
    """
    try:
        made = to_json(value).decode()  # a fifth of the time that `json` takes
        if "NaN" in made or "Infinity" in made:
            made = _STRICTLY(value)  # perhaps only a text that says so
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"the store can only hold what JSON can: {error}.") from None
    if "\\u0000" in made and _ESCAPED_NUL.search(made):
        raise StoreError(_NUL)
    return made


_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # not a backslash that was written out
_STRICTLY: Callable[[Any], str] = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
).encode


def _engine(address: Address) -> Engine:
    if address.path is not None:
        engine = create_engine(
            "sqlite://", creator=_opener(address), poolclass=QueuePool,
            json_serializer=as_json, **_POOL
        )  # fmt: skip
        event.listen(engine, "connect", _rememberer(address.path))
        event.listen(engine, "begin", _begin_sqlite)
    else:
        assert address.url is not None
        engine = create_engine(
            address.url, pool_pre_ping=True, pool_recycle=_RECYCLE, connect_args=_waits(address),
            json_serializer=as_json, **_POOL
        )  # fmt: skip
        event.listen(engine, "do_connect", _connect)
        event.listen(engine, "connect", _limit_statements)
        event.listen(engine, "handle_error", _leave_standby)
    event.listen(engine, "before_cursor_execute", _check_texts)
    return engine


def _opener(address: Address) -> Callable[[], sqlite3.Connection]:
    assert address.path is not None
    uri = f"{address.path.as_uri()}?mode=rw"  # only `create_file` makes a file

    def opened() -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri, uri=True, timeout=_LOCK_WAIT, check_same_thread=False, isolation_level=None
        )  # `isolation_level=None`: sqlite3 begins nothing by itself, `_begin_sqlite` does
        for rule in ("synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
            connection.execute(f"PRAGMA {rule}")
        return connection

    return opened


def _rememberer(path: Path) -> Callable[[Any, Any], None]:
    return lambda connection, record: remember(record.info, connection, path)


def _begin_sqlite(connection: Connection) -> None:
    """Take the lock at once where writing is meant: a reader that turns writer can only fail."""
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _waits(address: Address) -> dict[str, Any]:
    """Wait for a server that does not answer, but not for long; the URL may say otherwise."""
    assert address.url is not None
    rules = {
        "connect_timeout": _CONNECT_WAIT,
        "keepalives_idle": _STATEMENT_WAIT,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": _STATEMENT_WAIT * 1000,
        "application_name": "calibrant",
    }
    return {name: value for name, value in rules.items() if name not in address.url.query}


def _connect(_dialect: Any, _record: Any, words: Any, options: Any) -> Any:
    from calibrant.store.timeouts import PatientConnection

    return PatientConnection.connect(*words, **options)


def _limit_statements(connection: Any, _record: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET statement_timeout = '{_STATEMENT_WAIT}s'")
    connection.commit()


def _leave_standby(context: ExceptionContext) -> None:
    """Give up the connections to a server that takes no writes: new ones may find one that does."""
    if getattr(context.original_exception, "sqlstate", None) == _READ_ONLY:
        context.is_disconnect = True


def _check_texts(
    _connection: Any, _cursor: Any, _statement: str, parameters: Any, _context: Any, _many: bool
) -> None:
    """Refuse NUL in texts, which PostgreSQL cannot hold: both databases hold the same."""
    if _has_nul(parameters or ()):
        raise StoreError(_NUL)


def _has_nul(values: Any) -> bool:
    for value in values.values() if isinstance(values, dict) else values:
        kind = type(value)
        if kind is str:
            if "\0" in value:
                return True
        elif kind in (tuple, list, dict) and _has_nul(value):
            return True
    return False
