"""Database of a store: connections, transactions and the secret for keyed hashes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from pydantic_core import to_json
from sqlalchemy import Connection, Engine, create_engine, delete, event, insert, select
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool

from calibrant.errors import StoreError, StoreUnavailable, StoreUnfit
from calibrant.store.database_errors import translate_errors
from calibrant.store.schema import settings

_SCHEME = re.compile(r"(?i)([a-z][a-z0-9+.-]*):(?://|$)")
_LIKE_A_URL = re.compile(r"(?is)^\s*[a-z][a-z0-9+.-]+:/|^\s*(?:postgres|sqlite)[a-z0-9+]*:|:.*@")
"""Malformed URLs: a missing slash, an extra space or no scheme."""

_SQLITE = ("sqlite", "sqlite+pysqlite")
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")
_REMEDY = "use a path, sqlite:///calibrant.db or postgresql://user:password@host/database"


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a database."""

    shown: str  # URL without password
    name: str
    path: Path | None = None  # file of a SQLite database
    url: URL | None = None  # driver URL of a PostgreSQL database, with password

    @property
    def dialect(self) -> str:
        """Return "sqlite" or "postgresql"."""
        return "postgresql" if self.path is None else "sqlite"


def read_address(address: str | os.PathLike[str]) -> Address:
    """Parse a path or URL without opening it."""
    text = os.fspath(address)
    scheme = _SCHEME.match(text)
    if scheme is None and _LIKE_A_URL.search(text):  # not shown: it may contain a password
        raise StoreError(f"the address of the store is a malformed URL: {_REMEDY}.")
    if scheme is None:
        return _of_file(text, name=text)
    kind = scheme[1].lower()
    if kind not in _SQLITE + _POSTGRESQL:
        raise StoreError(f"a store is kept in SQLite or PostgreSQL, not in {kind!r}: {_REMEDY}.")
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # ValueError: a port that is not a number
        raise StoreError(f"the URL of the store is not valid: {_REMEDY}.") from None
    return _of_sqlite(url) if kind in _SQLITE else _of_postgresql(url)


def _of_sqlite(url: URL) -> Address:
    if url.host or url.username or url.query:
        raise StoreError(
            "the URL of a SQLite store is a path after three slashes, without host or options: "
            "use sqlite:///calibrant.db or sqlite:////folder/calibrant.db."
        )
    return _of_file(url.database or "", name=url.database or "")


def _of_file(text: str, *, name: str) -> Address:
    if text in ("", ":memory:") or "\0" in text:
        raise StoreError(
            f"a store needs a file, because memory is lost when the process ends: {_REMEDY}."
        )
    path = Path(os.path.abspath(os.path.expanduser(text)))
    return Address(f"sqlite:///{path}", name, path=path)


def _of_postgresql(url: URL) -> Address:
    if not url.database and "dbname" not in url.query:
        raise StoreError(f"the URL of the store names no database: {_REMEDY}.")
    plain = url.set(drivername="postgresql", query={})
    query = {name: value for name, value in url.query.items() if "password" not in name.lower()}
    return Address(
        plain.set(query=query).render_as_string(hide_password=True),
        plain.render_as_string(hide_password=True),
        url=url.set(drivername="postgresql+psycopg"),
    )


_LIMIT = 12.0  # Response timeout in seconds, slightly above the statement timeout of the server


class TimeoutConnection(psycopg.Connection[Any]):
    """Connection that is closed with an error after `limit` seconds without a response."""

    limit: float | None = _LIMIT

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Wait for an exchange with the server, up to the limit."""
        if self.limit is not None:
            gen = self._with_timeout(gen, self.limit)
        return super().wait(gen, *args, **options)

    def _with_timeout(self, gen: Any, limit: float) -> Generator[Any, Any, Any]:
        """Run an exchange with a deadline."""
        until, ready = time.monotonic() + limit, None
        while True:
            try:
                waits_for = gen.send(ready)
            except StopIteration as end:
                return end.value
            ready = yield waits_for
            if not ready and time.monotonic() > until:
                self.pgconn.finish()
                raise psycopg.OperationalError(f"the server did not respond within {limit:g} s")


_FILE, _LOG = "calibrant_file", "calibrant_log"


def remember_file(
    info: MutableMapping[Any, Any], connection: sqlite3.Connection, path: Path
) -> None:
    """Remember the file and log that a new connection has open."""
    connection.execute("PRAGMA schema_version").fetchone()  # opens the log too
    info[_FILE] = _identity(path)
    info[_LOG] = _identity(_log_path(path))


def is_current_file(info: MutableMapping[Any, Any], path: Path) -> bool:
    """Whether the open file and log are still those at the path."""
    if info[_FILE] is None or _identity(path) != info[_FILE]:
        return False
    if info[_LOG] is None:  # opened before the log existed
        info[_LOG] = _identity(_log_path(path))
        return True
    return bool(_identity(_log_path(path)) == info[_LOG])


def _log_path(path: Path) -> str:
    return f"{path}-wal"


def _identity(path: Path | str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


SECRET = "secret"  # Name of the setting with the secret of keyed hashes
_PROBE = "probe-"  # settings written to test whether writing works
_PROBE_SIZE = 500_000
_LOCK_WAIT = 5.0  # seconds to wait for a SQLite lock
_CONNECT_WAIT = 3  # connection timeout of PostgreSQL, in seconds
_STATEMENT_WAIT = 10  # statement timeout of PostgreSQL, in seconds
_RECYCLE = 300  # lifetime of a PostgreSQL connection, in seconds
_READ_ONLY = "25006"  # SQLSTATE of a write to a read-only server
_POOL = {"pool_size": 5, "max_overflow": 10, "pool_timeout": 5, "hide_parameters": True}
_WRITES, _SECRET = "calibrant_writes", "calibrant_secret"
_NUL = "text contains a NUL character and cannot be stored: remove it."


class Database:
    """A SQLite or PostgreSQL database, opened lazily; thread-safe."""

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
        """Return the name of this database in error messages."""
        return self.address.name

    @contextmanager
    def read(self, *, patient: bool = False) -> Iterator[Connection]:
        """Yield a connection in a read-only snapshot."""
        with translate_errors(self.name), self.engine.connect() as connection:
            self._check_file(connection)
            if self.dialect == "postgresql":
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with self._without_timeout(connection, patient), connection.begin():
                self._lift_limit(connection, patient)
                yield connection

    @contextmanager
    def write(self, *, patient: bool = False) -> Iterator[Connection]:
        """Yield a connection in a transaction that is committed at the end or rolled back.

        SQLite has one writer at a time; others wait up to 5 seconds.
        """
        try:
            with translate_errors(self.name), self.engine.connect() as connection:
                self._check_file(connection)
                connection = connection.execution_options(**{_WRITES: True})
                with self._without_timeout(connection, patient), connection.begin():
                    self._lift_limit(connection, patient)
                    yield connection
                self._check_file(connection)  # else the write is lost
        except StoreUnavailable:
            self._refuses_writes = True
            raise

    def check_writes(self) -> None:
        """After a failed write, test another one; raise `StoreUnavailable` if it fails too.

        Reading does not detect a full disk or a lock, nor does a smaller write.
        """
        if not self._refuses_writes:
            return
        self._refuses_writes = False  # unless this or a concurrent write fails
        # As large as many predictions, and incompressible.
        probe = {"name": f"{_PROBE}{secrets.token_hex(8)}", "value": secrets.token_hex(_PROBE_SIZE)}
        with self.write() as connection:
            connection.execute(insert(settings).values(**probe))
        with self.write() as connection:
            connection.execute(delete(settings).where(settings.c.name.startswith(_PROBE)))

    def keyed_hash(self, data: bytes, *, purpose: bytes = b"") -> str:
        """Return the BLAKE2b of `data` under this store's secret, as 64 hex digits.

        Without the database, a short text such as a customer number cannot be recovered by
        guessing. Equal texts have equal hashes within a store.
        """
        secret = self._secret
        if secret is None:
            with self.read() as connection:
                secret = self._secret_of(connection)
            self._secret = self._hashed_with = secret
        return hashlib.blake2b(data, key=secret, digest_size=32, person=purpose).hexdigest()

    def check_secret(self, connection: Connection) -> None:
        """Refuse to write hashes that were made with the secret of another store.

        A new connection may reach another store: a replaced file or a restored server.
        """
        if self._hashed_with is None or self._hashed_with == self._secret_of(connection):
            return
        self._secret = self._hashed_with = None
        raise StoreUnavailable(f"the store {self.name} was replaced by another one: try again.")

    def create_file(self) -> None:
        """Create a missing SQLite file, readable by its owner only."""
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
                f"the store {self.name} cannot be created: {error.strerror}: choose another path."
            ) from None

    def close(self) -> None:
        """Close idle connections; the next use opens new ones."""
        self.engine.dispose()
        self._secret = None

    def _forget_secret(self, _connection: Any, _record: Any) -> None:
        self._secret = None

    def _secret_of(self, connection: Connection) -> bytes:
        """Return the secret of the store, cached per connection."""
        if _SECRET not in connection.info:
            value = connection.execute(
                select(settings.c.value).where(settings.c.name == SECRET)
            ).scalar_one_or_none()
            if value is None:
                raise StoreUnfit(f"the store {self.name} is not ready: open it with Store.open.")
            connection.info[_SECRET] = bytes.fromhex(value)
        secret: bytes = connection.info[_SECRET]
        return secret

    @contextmanager
    def _without_timeout(self, connection: Connection, patient: bool) -> Iterator[None]:
        """Disable the response timeout of a connection while it is in use."""
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
        """Raise `StoreUnavailable` if the SQLite file was removed or replaced."""
        path = self.address.path
        if path is None or is_current_file(connection.info, path):
            return
        connection.invalidate()
        self.close()
        raise StoreUnavailable(
            f"the store {self.name} was removed or replaced while it was in use: put the file back."
        )


def as_json(value: Any) -> str:
    r"""Encode `value` as JSON that both databases accept."""
    try:
        encoded = to_json(value).decode()  # five times faster than `json`
        if "NaN" in encoded or "Infinity" in encoded:
            encoded = _encode_strict(value)  # may be text
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"value cannot be encoded as JSON: {error}.") from None
    if "\\u0000" in encoded and _ESCAPED_NUL.search(encoded):
        raise StoreError(_NUL)
    return encoded


_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # not an escaped backslash

_encode_strict: Callable[[Any], str] = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
).encode


def _engine(address: Address) -> Engine:
    if address.path is not None:
        engine = create_engine(
            "sqlite://", creator=_opener(address), poolclass=QueuePool,
            json_serializer=as_json, **_POOL
        )  # fmt: skip
        event.listen(engine, "connect", _file_recorder(address.path))
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
    uri = f"{address.path.as_uri()}?mode=rw"  # only `create_file` creates the file

    def open_connection() -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri, uri=True, timeout=_LOCK_WAIT, check_same_thread=False, isolation_level=None
        )  # `isolation_level=None`: `_begin_sqlite` begins transactions
        for rule in ("synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
            connection.execute(f"PRAGMA {rule}")
        return connection

    return open_connection


def _file_recorder(path: Path) -> Callable[[Any, Any], None]:
    return lambda connection, record: remember_file(record.info, connection, path)


def _begin_sqlite(connection: Connection) -> None:
    """Lock at once for writing, because upgrading a read transaction can fail."""
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _waits(address: Address) -> dict[str, Any]:
    """Return connection timeouts, unless set in the URL."""
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


def _connect(_dialect: Any, _record: Any, arguments: Any, options: Any) -> Any:
    return TimeoutConnection.connect(*arguments, **options)


def _limit_statements(connection: Any, _record: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET statement_timeout = '{_STATEMENT_WAIT}s'")
    connection.commit()


def _leave_standby(context: ExceptionContext) -> None:
    """Drop connections to a read-only server, so that new ones may reach the primary."""
    if getattr(context.original_exception, "sqlstate", None) == _READ_ONLY:
        context.is_disconnect = True


def _check_texts(
    _connection: Any, _cursor: Any, _statement: str, parameters: Any, _context: Any, _many: bool
) -> None:
    """Refuse NUL in texts on both databases, because PostgreSQL cannot store it."""
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
