"""Connections and transactions: nothing half-written, nobody waits for ever, all in sentences."""

import os
import stat
import threading
from pathlib import Path

import pytest
from sqlalchemy import event, insert, select, text
from tests.databases import new_store, postgresql_away, run_postgresql
from tests.sentences import assert_mentions, refuses

from calibrant.errors import StoreError, StoreUnavailable
from calibrant.store import database as database_module
from calibrant.store.database import Database, as_json, read_address
from calibrant.store.schema import settings

NUL = "text contains a NUL character and cannot be stored: remove it."


@pytest.fixture
def database(database_url):
    made = Database(database_url)
    yield made
    made.close()


@pytest.fixture
def sqlite(tmp_path):
    with new_store("sqlite", tmp_path) as url:
        made = Database(url)
        yield made
        made.close()


@pytest.fixture
def postgresql(tmp_path):
    with new_store("postgresql", tmp_path) as url:
        made = Database(url)
        yield made
        made.close()


def put(database, name, value="x"):
    with database.write() as connection:
        connection.execute(insert(settings).values(name=name, value=value))


def names(database):
    with database.read() as connection:
        found = connection.execute(select(settings.c.name).order_by(settings.c.name))
        return [name for (name,) in found if name != "secret"]


def with_rule(database, rule):
    """Give every connection from now on a rule of SQLite."""
    database.close()
    event.listen(database.engine, "connect", lambda driver, _: driver.execute(f"PRAGMA {rule}"))


def test_making_one_touches_nothing(tmp_path):
    Database(tmp_path / "calibrant.db")
    Database("postgresql://nobody@nowhere.invalid/log")
    assert list(tmp_path.iterdir()) == []


def test_every_sqlite_connection_is_durable_and_strict(sqlite):
    rules = {"synchronous": 2, "foreign_keys": 1, "secure_delete": 1, "busy_timeout": 5000}
    with sqlite.read() as first, sqlite.read() as second:
        for connection in (first, second):
            found = {r: connection.execute(text(f"PRAGMA {r}")).scalar_one() for r in rules}
            assert found == rules
            assert connection.execute(text("PRAGMA journal_mode")).scalar_one() == "wal"


def test_statements_of_postgresql_have_a_limit_that_the_patient_lift(postgresql):
    asked = text("SHOW statement_timeout")
    for lend in (postgresql.read, postgresql.write):
        with lend() as connection:
            assert connection.execute(asked).scalar_one() == "10s"
        with lend(patient=True) as connection:
            assert connection.execute(asked).scalar_one() == "0"
    with postgresql.read() as connection:
        assert connection.execute(asked).scalar_one() == "10s"


def test_a_pool_gets_no_connection_back_that_waits_for_ever(postgresql):
    def fail():
        with postgresql.write(patient=True):
            raise KeyError

    for lend in (postgresql.read, postgresql.write):
        with lend(patient=True) as connection:
            driver = connection.connection.driver_connection
            assert driver.limit is None
        assert driver.limit == type(driver).limit > 0
    with pytest.raises(KeyError):
        fail()
    assert driver.limit == type(driver).limit


def test_a_statement_that_takes_too_long_is_unavailable(postgresql):
    slow = "SET LOCAL statement_timeout = 20; SELECT pg_sleep(5)"
    with pytest.raises(StoreUnavailable, match="timed out"), postgresql.read() as connection:
        connection.execute(text(slow))


def test_a_transaction_that_fails_leaves_nothing(database):
    def fail():
        with database.write() as connection:
            connection.execute(insert(settings).values(name="half", value="x"))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    put(database, "whole")
    assert names(database) == ["whole"]


def test_a_reader_sees_one_moment(database):
    put(database, "one")
    with database.read() as connection:
        asked = select(settings.c.name).where(settings.c.name != "secret")
        before = connection.execute(asked).scalars().all()
        put(database, "two")
        after = connection.execute(asked).scalars().all()
    assert before == after == ["one"]
    assert names(database) == ["one", "two"]


def test_writers_wait_for_each_other(database):
    """Each reads and then writes, which loses counts where two do it at the same time."""
    put(database, "count", "0")

    def count():
        for _ in range(10):
            with database.write() as connection:
                asked = select(settings.c.value).where(settings.c.name == "count")
                found = connection.execute(asked.with_for_update()).scalar_one()
                change = settings.update().where(settings.c.name == "count")
                connection.execute(change.values(value=str(int(found) + 1)))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.read() as connection:
        asked = select(settings.c.value).where(settings.c.name == "count")
        assert connection.execute(asked).scalar_one() == "40"


def test_a_lock_that_is_not_given_back_is_unavailable(sqlite):
    with_rule(sqlite, "busy_timeout = 20")
    with (
        sqlite.write(),
        refuses(StoreUnavailable, ".db", "locked", "another process", "try again"),
    ):
        put(sqlite, "late")
    put(sqlite, "later")
    assert names(sqlite) == ["later"]


def test_a_full_disk_is_unavailable_and_leaves_nothing_half_written(sqlite):
    with sqlite.read() as connection:
        pages = connection.execute(text("PRAGMA page_count")).scalar_one()
    with_rule(sqlite, f"max_page_count = {pages + 5}")
    rows = [{"name": f"row-{number:02}", "value": "x" * 2000} for number in range(50)]
    with refuses(StoreUnavailable, "full", "free space"), sqlite.write() as connection:
        connection.execute(insert(settings), rows)
    assert names(sqlite) == []
    put(sqlite, "small")
    assert names(sqlite) == ["small"]


def test_a_database_that_takes_no_writes_is_unavailable(database):
    if database.dialect == "sqlite":
        with_rule(database, "query_only = ON")
    else:
        name = database.engine.url.database
        run_postgresql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with pytest.raises(StoreUnavailable, match="is read-only"):
        put(database, "never")


def test_a_server_that_takes_writes_again_gets_them(postgresql):
    """A standby that was promoted, or one that the URL's other host replaced."""
    name = postgresql.engine.url.database
    run_postgresql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="is read-only"):
            put(postgresql, "meanwhile")
    run_postgresql(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    put(postgresql, "after")
    assert names(postgresql) == ["after"]


def test_a_server_that_goes_away_is_unavailable_and_comes_back_by_itself(postgresql):
    put(postgresql, "before")
    with postgresql_away():
        for _ in range(2):
            with refuses(StoreUnavailable, "cannot be reached", "check", "server"):
                put(postgresql, "meanwhile")  # it would hang if it waited for the server
    put(postgresql, "after")  # the first call, on a connection that the pool had kept
    assert names(postgresql) == ["after", "before"]


def test_a_server_that_stops_within_a_transaction_leaves_nothing(postgresql):
    def be_cut_off():
        with postgresql.write() as connection:
            connection.execute(insert(settings).values(name="half", value="x"))
            with postgresql_away():
                pass
            connection.execute(insert(settings).values(name="whole", value="x"))

    with pytest.raises(StoreUnavailable):
        be_cut_off()
    assert names(postgresql) == []


def test_a_pool_without_a_free_connection_is_unavailable(database_url, monkeypatch):
    few = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 0.02}
    monkeypatch.setattr(database_module, "_POOL", {**database_module._POOL, **few})
    database = Database(database_url)
    with (
        database.read(),
        refuses(StoreUnavailable, "no free connection", "try again"),
    ):
        names(database)
    assert names(database) == []
    database.close()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("a\0b", NUL),
        ("half \ud83d", "text contains an unpaired surrogate and cannot be stored: remove it."),
    ],
)
def test_texts_that_one_database_cannot_hold_are_refused_by_both(database, value, words):
    with pytest.raises(StoreError) as caught:
        put(database, "name", value)
    assert str(caught.value) == words
    with pytest.raises(StoreError), database.read() as connection:
        connection.execute(select(settings).where(settings.c.name.in_(["fine", value])))
    assert names(database) == []


def test_texts_that_look_like_trouble_are_kept(database):
    hard = "'; DROP TABLE settings; -- \\u0000 %s :name {} \x01\x7f\ufeff\u2028 😀"
    put(database, hard, hard)
    assert names(database) == [hard]


def test_a_row_that_is_there_already_is_refused_without_its_content(database):
    put(database, "name", "secret of a customer")
    with pytest.raises(StoreError) as caught:
        put(database, "name", "secret of a customer")
    assert not isinstance(caught.value, StoreUnavailable)
    assert "secret of a customer" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_json_is_compact_and_refuses_what_json_cannot_hold():
    assert as_json({"ä": [1.5, None, True]}) == '{"ä":[1.5,null,true]}'
    assert as_json("\\u0000") == '"\\\\u0000"'
    for bad in (float("nan"), float("inf"), object(), [{"a": float("-inf")}]):
        with refuses(StoreError, "encoded as JSON"):
            as_json([bad])
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with refuses(StoreError, "encoded as JSON"):
        as_json(deep)


@pytest.mark.parametrize("value", ["\0", "\\\0", "\\\\\0", {"a\0": 1}, [["x", {"y": "\0"}]]])
def test_json_with_a_nul_in_any_place_is_refused(value):
    with pytest.raises(StoreError, match="NUL"):
        as_json(value)


def test_a_keyed_hash_is_the_same_within_a_store_and_another_in_another(blank_url, tmp_path):
    from calibrant.store import Store

    with Store.open(blank_url) as one, Store.open(tmp_path / "other.db") as other:
        told = one.keyed_hash(b"customer-17")
        assert len(bytes.fromhex(told)) == 32
        assert Store(blank_url).keyed_hash(b"customer-17") == told
        assert one.keyed_hash(b"customer-18") != told
        assert other.keyed_hash(b"customer-17") != told


def test_a_store_without_its_secret_makes_no_hashes(database):
    with database.write() as connection:
        connection.execute(settings.delete())
    with pytest.raises(StoreError, match="is not ready"):
        database.keyed_hash(b"customer-17")


def test_the_file_of_a_store_is_its_owners(tmp_path):
    database = Database(tmp_path / "calibrant.db")
    database.create_file()
    assert stat.S_IMODE(os.stat(tmp_path / "calibrant.db").st_mode) == 0o600
    with refuses(StoreError, "no tables"):
        names(database)
    database.close()


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("no/such/folder/calibrant.db", ("no/such/folder", "does not exist", "create")),
        ("", ("is a folder", "name a file")),
        ("file/calibrant.db", ("/file ", "does not exist", "create")),
    ],
)
def test_a_place_where_no_file_can_be_is_refused(tmp_path, place, words):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError) as caught:
        Database(tmp_path / place).create_file()
    assert_mentions(caught.value, *words)


def test_reading_makes_no_file(tmp_path):
    with refuses(StoreUnavailable, "calibrant.db", "cannot be opened", "check"):
        names(Database(tmp_path / "calibrant.db"))
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_failed_is_remembered_until_another_succeeds(sqlite):
    other = Database(sqlite.address.path)
    with_rule(sqlite, "busy_timeout = 50")
    sqlite.check_writes()
    with other.write():
        with pytest.raises(StoreUnavailable, match="locked"):
            put(sqlite, "refused")
        with pytest.raises(StoreUnavailable, match="locked"):
            sqlite.check_writes()
    sqlite.check_writes()
    assert names(sqlite) == []  # nothing is left of what was tried
    with other.write():
        sqlite.check_writes()  # all is well: nothing is tried
    other.close()


def test_a_small_write_that_succeeds_does_not_make_room_for_others(sqlite):
    (pages,) = _one(sqlite, "PRAGMA page_count")
    with_rule(sqlite, f"max_page_count = {pages + 20}")
    with pytest.raises(StoreUnavailable, match="full"):
        put(sqlite, "large", "x" * 500_000)
    put(sqlite, "small")
    with pytest.raises(StoreUnavailable, match="full"):
        sqlite.check_writes()
    with_rule(sqlite, "max_page_count = 1000000")
    sqlite.check_writes()
    assert names(sqlite) == ["small"]


def _one(database, statement):
    with database.read() as connection:
        return connection.exec_driver_sql(statement).one()


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("calibrant.db", Path.cwd() / "calibrant.db"),
        ("sqlite:///calibrant.db", Path.cwd() / "calibrant.db"),
        ("sqlite+pysqlite:///a/../calibrant.db", Path.cwd() / "calibrant.db"),
        ("sqlite:////var/log/calibrant.db", Path("/var/log/calibrant.db")),
        ("/var/log/what?#.db", Path("/var/log/what?#.db")),
        ("~/calibrant.db", Path.home() / "calibrant.db"),
        (Path("/var/log/calibrant.db"), Path("/var/log/calibrant.db")),
    ],
)
def test_a_path_or_a_sqlite_url_is_a_file(given, path):
    address = read_address(given)
    assert address.path == path
    assert address.dialect == "sqlite"
    assert address.shown == f"sqlite:///{path}"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "PostgreSQL"])
def test_every_name_of_postgresql_means_psycopg(scheme):
    address = read_address(f"{scheme}://user:p%40ss@host:5433/log")
    assert address.dialect == "postgresql"
    assert address.url.drivername == "postgresql+psycopg"
    assert address.url.password == "p@ss"
    assert address.shown == "postgresql://user:***@host:5433/log"


def test_a_password_among_the_options_is_hidden_too():
    address = read_address("postgresql:///log?host=db&password=hunter2&sslpassword=hunter3")
    assert "hunter" not in f"{address.shown} {address.name}"
    assert address.shown == "postgresql:///log?host=db"
    assert address.url.query["password"] == "hunter2"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("mysql://root:hunter2@localhost/log", ("'mysql'", "SQLite or PostgreSQL")),
        (
            "postgresql+psycopg2://root:hunter2@localhost/log",
            ("'postgresql+psycopg2'", "SQLite or PostgreSQL"),
        ),
        ("postgresql://root:hunter2@localhost", ("names no database",)),
        ("postgresql://root:hunter2@localhost:port/log", ("is not valid",)),
        ("postgresql:/root:hunter2@localhost/log", ("malformed URL",)),
        (Path("postgresql://root:hunter2@localhost/log"), ("malformed URL",)),
        ("postgresql:root@localhost/hunter2", ("malformed URL",)),
        (" postgresql://root:hunter2@localhost/log", ("malformed URL",)),
        ("root:hunter2@localhost/log", ("malformed URL",)),
        ("sqlite:calibrant.db", ("malformed URL",)),
        ("sqlite://", ("needs a file",)),
        ("sqlite:///:memory:", ("needs a file",)),
        (":memory:", ("needs a file",)),
        ("", ("needs a file",)),
        ("a\0b", ("needs a file",)),
        ("sqlite://folder/calibrant.db", ("three slashes",)),
        ("sqlite:///calibrant.db?timeout=3", ("without", "options")),
    ],
)
def test_what_cannot_be_a_store_is_refused_in_a_sentence(given, words):
    with refuses(StoreError, *words) as caught:
        read_address(given)
    assert "hunter2" not in str(caught.value)
    assert str(caught.value).endswith(".")
