"""A SQLite file that is taken away while it is open gets nothing more, and is found again."""

import os
import shutil

import pytest
from sqlalchemy import insert, select
from tests.databases import new_store

from calibrant.errors import StoreUnavailable
from calibrant.store.database import Database
from calibrant.store.schema import settings

GONE = "was removed or replaced while it was in use: put the file back"


@pytest.fixture
def database(tmp_path):
    with new_store("sqlite", tmp_path) as url:
        made = Database(url)
        put(made, "first")
        yield made
        made.close()


def put(database, name):
    with database.write() as connection:
        connection.execute(insert(settings).values(name=name, value="x"))


def names(database):
    with database.read() as connection:
        found = set(connection.execute(select(settings.c.name)).scalars())
    return found - {"secret"}


def copied(database):
    """Return a copy of the file with all that was written."""
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return shutil.copy(database.address.path, database.address.path.with_name("copy.db"))


@pytest.mark.parametrize("use", [lambda database: put(database, "more"), names])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_not_there_any_more_is_neither_read_nor_written(database, use, replaced):
    aside = copied(database)
    if replaced:
        os.replace(shutil.copy(aside, f"{aside}.again"), database.address.path)
    else:
        database.address.path.unlink()
    with pytest.raises(StoreUnavailable, match=GONE):
        use(database)
    os.replace(aside, database.address.path)
    put(database, "second")
    assert names(database) == {"first", "second"}


def test_what_was_written_to_a_file_that_goes_meanwhile_is_not_said_to_be_written(database):
    def put_and_remove():
        with database.write() as connection:
            connection.execute(insert(settings).values(name="lost", value="x"))
            database.address.path.unlink()

    with pytest.raises(StoreUnavailable, match=GONE):
        put_and_remove()


def test_a_log_that_was_removed_gets_nothing_more_and_what_it_had_is_kept(database):
    os.unlink(f"{database.address.path}-wal")
    with pytest.raises(StoreUnavailable, match=GONE):
        put(database, "lost")
    put(database, "second")
    assert names(database) == {"first", "second"}


def test_a_file_that_came_back_is_the_same(database):
    path, aside = database.address.path, database.address.path.with_name("aside.db")
    os.rename(path, aside)
    with pytest.raises(StoreUnavailable, match=GONE):
        put(database, "lost")
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        put(database, "lost")
    os.rename(aside, path)
    put(database, "second")
    assert names(database) == {"first", "second"}
