"""Tables come about in an empty database and from older ones, once, whoever comes first."""

import multiprocessing
import shutil
import sqlite3
from functools import partial
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import event, inspect, select, text
from tests.databases import a_request, new_store, record_bundle
from tests.sentences import refuses

from calibrant.errors import StoreError, StoreUnavailable
from calibrant.store import Store
from calibrant.store import migration as migrating
from calibrant.store.database import Database
from calibrant.store.schema import metadata, outcome_requests

LATER = '''
"""A later version, for tests."""
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9999", "{before}"


def upgrade():
    op.add_column("predictions", sa.Column("mood", sa.Text))
    op.create_index("ix_predictions_mood", "predictions", ["mood"])
    {end}
'''


@pytest.fixture
def blank(blank_url):
    made = Database(blank_url)
    yield made
    made.close()


@pytest.fixture
def later(tmp_path, monkeypatch):
    """Act as a later version of Calibrant would, for as long as one stays within it."""

    def act(end=""):
        folder = tmp_path / "later"
        shutil.copytree(Path(migrating.__file__).parent / "migrations", folder)
        file = folder / "versions" / "v9999_later.py"
        file.write_text(LATER.format(before=migrating._newest(), end=end))
        monkeypatch.setattr(migrating, "_FOLDER", folder)

    return act


def version(database):
    with database.read() as connection:
        return connection.execute(text("SELECT version_num FROM schema_version")).scalars().all()


def tables(database):
    with database.engine.connect() as connection:
        return set(inspect(connection).get_table_names())


def test_an_empty_database_gets_all_tables_and_then_stays_as_it_is(blank):
    migrating.migrate(blank)
    assert tables(blank) == {*metadata.tables, "schema_version"}
    assert version(blank) == [migrating._newest()]
    secret = blank.keyed_hash(b"")
    migrating.migrate(blank)
    assert Database(blank.engine.url.render_as_string(False) if blank.address.path is None
                    else blank.address.path).keyed_hash(b"") == secret  # fmt: skip


def test_migrations_and_schema_are_the_same_tables(blank):
    migrating.migrate(blank)
    with blank.engine.connect() as connection:
        options = {"version_table": "schema_version", "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_migrations_and_schema_have_the_same_checks(blank, blank_url, tmp_path):
    migrating.migrate(blank)
    with new_store(blank.dialect, tmp_path, migrated=False) as url:
        other = Database(url)
        other.create_file()
        with other.write() as connection:
            metadata.create_all(connection)
        found = []
        for database in (blank, other):
            with database.engine.connect() as connection:
                look = inspect(connection)
                found.append({
                    (table, check["name"], check["sqltext"])
                    for table in metadata.tables for check in look.get_check_constraints(table)
                })  # fmt: skip
        other.close()
    assert len(found[0]) >= 6
    assert found[0] == found[1]


def test_an_older_database_is_brought_up_to_date_with_its_rows(blank, blank_url, later):
    with Store.open(blank_url) as store:
        record_bundle(store).predictions.add([a_request()])
        later()
        store.prepare()
        assert store.predictions.count() == 1
        assert version(blank) == ["9999"]
        store.check()
    with blank.read() as connection:
        assert connection.execute(text("SELECT mood FROM predictions")).scalar_one() is None


def test_version_1_keeps_the_requests_that_reported_outcomes(blank, tmp_path, monkeypatch):
    here = migrating._FOLDER
    older = tmp_path / "older"
    shutil.copytree(here, older)
    for file in (older / "versions").glob("v*.py"):
        if not file.name.startswith("v0001"):
            file.unlink()
    monkeypatch.setattr(migrating, "_FOLDER", older)
    migrating.migrate(blank)
    assert version(blank) == ["0001"]
    rows = [("r1", "h1", "2026-01-31 12:00:00.000000"), ("r2", "h2", "2026-02-01 00:00:00.000000")]
    with blank.write() as connection:
        for row in rows:
            values = ", ".join(f"'{value}'" for value in row)
            connection.execute(text(f"INSERT INTO tellings (request, hash, at) VALUES ({values})"))
    secret = blank.keyed_hash(b"")
    monkeypatch.setattr(migrating, "_FOLDER", here)
    migrating.migrate(blank)
    assert version(blank) == [migrating._newest()]
    assert tables(blank) == {*metadata.tables, "schema_version"}
    assert blank.keyed_hash(b"") == secret
    with blank.engine.connect() as connection:
        found = connection.execute(select(outcome_requests).order_by(outcome_requests.c.request))
        assert [(row.request, row.hash) for row in found] == [("r1", "h1"), ("r2", "h2")]
        look = inspect(connection)
        indexes = {index["name"] for index in look.get_indexes("outcome_requests")}
        assert indexes == {"ix_outcome_requests_at"}
        assert look.get_pk_constraint("outcome_requests")["name"] == "pk_outcome_requests"
        options = {"version_table": "schema_version", "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_a_newer_database_is_refused_and_left_alone(blank, blank_url, later, monkeypatch):
    here = migrating._FOLDER
    later()
    with Store.open(blank_url) as newer:
        record_bundle(newer).predictions.add([a_request()])
    monkeypatch.setattr(migrating, "_FOLDER", here)
    with refuses(StoreError, "version 9999", "newer", "upgrade calibrant") as caught:
        Store.open(blank_url)
    assert not isinstance(caught.value, StoreUnavailable)
    with refuses(StoreUnavailable, "version 9999"):
        Store(blank_url).check()
    assert version(blank) == ["9999"]


def test_a_migration_that_fails_leaves_the_older_tables(blank, blank_url, later):
    with Store.open(blank_url) as store:
        record_bundle(store).predictions.add([a_request()])
        before = version(blank)
        later(end='op.execute("INSERT INTO nowhere VALUES (1)")')
        with pytest.raises(StoreError):
            store.prepare()
        assert version(blank) == before
        with blank.engine.connect() as connection:
            columns = {column["name"] for column in inspect(connection).get_columns("predictions")}
        assert "mood" not in columns
        assert store.predictions.count() == 1


def test_the_database_of_another_program_is_refused_and_left_alone(blank, blank_url):
    blank.create_file()
    with blank.write() as connection:
        connection.execute(text("CREATE TABLE predictions (id TEXT)"))
    with refuses(StoreError, "table 'predictions'", "another program"):
        Store.open(blank_url)
    assert tables(blank) == {"predictions"}


def test_another_programs_sqlite_file_is_refused_whatever_its_tables(tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("CREATE TABLE orders (id TEXT)")
    connection.close()
    before = (tmp_path / "shop.db").read_bytes()
    with refuses(StoreError, "table 'orders'", "another program"):
        Store.open(tmp_path / "shop.db")
    assert (tmp_path / "shop.db").read_bytes() == before


@pytest.fixture
def without_log(tmp_path):
    """Return the path of a store that has no write-ahead log yet."""
    path = tmp_path / "calibrant.db"
    Store.open(path).close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    connection.close()
    return path


class Busy(sqlite3.Connection):
    """Refuses a write-ahead log at first, as SQLite does where two begin it at once."""

    refusals = 3

    def execute(self, statement, *rest):
        if "journal_mode = WAL" in statement and Busy.refusals > 0:
            Busy.refusals -= 1
            raise sqlite3.OperationalError("database is locked")
        return super().execute(statement, *rest)


def test_a_write_ahead_log_that_is_refused_is_tried_again(without_log, monkeypatch):
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Busy))
    with Store.open(without_log) as store, store._database.read() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"
    assert Busy.refusals == 0


def test_a_store_does_not_wait_for_ever_for_a_reader(without_log, monkeypatch):
    monkeypatch.setattr(migrating, "_WAL_WAIT", 0.05)
    database = Database(without_log)
    event.listen(database.engine, "connect", lambda c, _: c.execute("PRAGMA busy_timeout = 10"))
    with Database(without_log).read() as reader:
        assert reader.execute(text("SELECT count(*) FROM settings")).scalar_one() == 1
        with refuses(StoreUnavailable, "cannot be prepared", "locked"):
            migrating._keep_write_ahead_log(database)
    migrating._keep_write_ahead_log(database)
    database.close()


def _open_at_once(url, barrier, answers):
    barrier.wait()
    try:
        with Store.open(url) as store:
            answers.put(store.keyed_hash(b"customer-17"))
    except Exception as error:
        answers.put(repr(error))


def test_several_processes_may_open_a_new_store_at_once(blank_url):
    start = multiprocessing.get_context("fork")
    barrier, answers = start.Barrier(4), start.Queue()
    arguments = (blank_url, barrier, answers)
    processes = [start.Process(target=_open_at_once, args=arguments) for _ in range(4)]
    for process in processes:
        process.start()
    told = [answers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(timeout=60)
    with Store(blank_url) as store:
        assert told == [store.keyed_hash(b"customer-17")] * 4
        store.check()
