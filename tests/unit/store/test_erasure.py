"""Forgetting and pruning: all rows go, on SQLite their bytes too, and a note of the deed stays."""

import random
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest
from sqlalchemy import select
from tests.databases import ON_SQLITE, a_prediction, a_request, new_store
from tests.sentences import refuses
from tests.unit.store.rows import hours, label, outcome, put, row

from calibrant.errors import InputError, StoreError, StoreUnavailable
from calibrant.store import Erased, LoggedRequest, Store
from calibrant.store import erasure as erasing
from calibrant.store.schema import erasures, predictions


@pytest.fixture
def on_sqlite(tmp_path, monkeypatch):
    """Give a store in a file, which does not wait for long where it is locked."""
    monkeypatch.setattr("calibrant.store.database._LOCK_WAIT", 0.05)
    folder = tmp_path / "store"
    folder.mkdir()
    with new_store("sqlite", folder) as url, Store(url) as made:
        yield made


def notes(store):
    with store._database.read() as connection:
        return connection.execute(select(erasures).order_by(erasures.c.at)).all()


def file_bytes(store):
    """Return all bytes of the database, its log and whatever else lies beside it."""
    folder = store._database.address.path.parent
    return b"".join(file.read_bytes() for file in folder.iterdir())


def test_all_of_a_unit_goes_with_its_labels_and_outcomes_and_nothing_else(store):
    mine = put(store, *(row(unit="customer-17", at=hours(i)) for i in range(3)))
    others = put(store, row(unit="customer-1"), row(unit="Customer-17"), row())
    told = [outcome(mine[0]), outcome(mine[2], text="a word"), outcome(others[0])]
    store.outcomes.add(told, [label(mine[0]), label(others[0]), label(mine[0], "bad")])
    assert store.forget("customer-17") == Erased(3, 2, 2)
    assert [store.predictions.get(one.id) for one in mine] == [None] * 3
    assert [store.predictions.get(one.id) for one in others] == list(others)
    assert [len(part) for part in store.outcomes.of(others[0].id)] == [1, 1]
    assert store.outcomes.of(mine[0].id) == ((), ())
    assert store.forget("customer-17") == Erased(0, 0, 0)


def test_what_stays_of_a_unit_is_a_keyed_hash_the_time_and_the_counts(store):
    put(store, row(unit="customer-17"))
    store.forget("customer-17", at=hours(9))
    (note,) = notes(store)
    assert note.unit_hash == store.keyed_hash(b"customer-17")
    assert (note.at, note.before) == (hours(9), None)
    assert (note.predictions, note.labels, note.outcomes) == (1, 0, 0)
    assert "customer-17" not in str(note)


def test_a_unit_is_forgotten_whole_or_not_at_all(store, monkeypatch):
    (mine,) = put(store, row(unit="customer-17"))
    store.outcomes.add([outcome(mine)], [label(mine)])

    def fault():
        raise ZeroDivisionError

    monkeypatch.setattr(erasing, "new_id", fault)
    with pytest.raises(ZeroDivisionError):
        store.forget("customer-17")
    assert store.predictions.get(mine.id) == mine
    assert [len(part) for part in store.outcomes.of(mine.id)] == [1, 1]


@ON_SQLITE
def test_a_unit_that_is_no_text_is_refused(store):
    for unit in ("", "\ud800"):
        with refuses(InputError, "unit", "non-empty"):
            store.forget(unit)
    with pytest.raises(StoreError, match="NUL"):
        store.forget("a\0b")
    assert notes(store) == []


def test_the_bytes_of_a_unit_are_gone_from_every_file(on_sqlite):
    """Units come and go in no order: SQLite moves rows between pages, and leaves copies behind."""
    chance = random.Random(0)
    units = [f"unit-{i:05d}-of-a-customer" for i in range(200)]
    for _ in range(15):
        asked = chance.sample(units, 100)
        texts = [f"text of {unit}. " + "word " * chance.randrange(90) for unit in asked]
        rows = [row(unit=u, input={"text": t}) for u, t in zip(asked, texts, strict=True)]
        put(on_sqlite, *rows)
        on_sqlite.outcomes.add([outcome(one, text=f"said of {one.unit}") for one in rows], [])
    gone = chance.sample(units, 150)
    with on_sqlite._database.write() as connection:
        for unit in gone[1:]:
            asked = select(predictions.c.id).where(predictions.c.unit == unit)
            erasing._delete(connection, asked)
    on_sqlite.forget(gone[0])
    left = file_bytes(on_sqlite)
    assert [unit for unit in gone if unit.encode() in left] == []
    assert all(unit.encode() in left for unit in set(units) - set(gone))


def test_bytes_that_cannot_be_cleaned_away_now_are_told_of_and_go_the_next_time(on_sqlite):
    put(on_sqlite, row(unit="customer-17", input={"text": "a secret"}))
    file = on_sqlite._database.address.path
    with closing(sqlite3.connect(file, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM predictions").fetchall()
        with refuses(StoreUnavailable, "rows are deleted", "bytes", "run this again"):
            on_sqlite.forget("customer-17")
        assert on_sqlite.predictions.count() == 0
        reader.execute("COMMIT")
    assert on_sqlite.forget("customer-17") == Erased(0, 0, 0)
    assert b"a secret" not in file_bytes(on_sqlite)


def test_a_file_that_is_locked_or_full_is_told_of_in_a_sentence(on_sqlite, monkeypatch):
    def full(*_):
        raise StoreUnavailable("the store is full: make room on its disk.")

    monkeypatch.setattr(erasing, "_outside_transactions", full)
    with refuses(StoreUnavailable, "rows are deleted", "store is full"):
        on_sqlite.forget("customer-17")
    monkeypatch.undo()
    with closing(sqlite3.connect(on_sqlite._database.address.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with refuses(StoreUnavailable, "locked", "another process"):
            erasing._outside_transactions(on_sqlite._database, "VACUUM")


@pytest.fixture
def small_chunks(monkeypatch):
    """Prune ten at a time, and return how often others got their turn."""
    turns = []
    monkeypatch.setattr(erasing, "_CHUNK", 10)
    monkeypatch.setattr(erasing.time, "sleep", turns.append)
    return turns


def test_what_is_older_goes_and_the_rest_stays(store, small_chunks):
    rows = put(store, *(row(at=hours(i), unit=f"customer-{i}") for i in range(35)))
    store.outcomes.add([outcome(rows[3]), outcome(rows[30])], [label(rows[3]), label(rows[20])])
    begun = datetime.now(UTC)
    assert store.prune(hours(25)) == Erased(25, 2, 1)
    assert {one.id for one in store.predictions.search()} == {one.id for one in rows[25:]}
    assert len(store.outcomes.of(rows[30].id)[1]) == 1
    (note,) = notes(store)
    assert (note.before, note.unit_hash) == (hours(25), None)
    assert (note.predictions, note.labels, note.outcomes) == (25, 2, 1)
    assert note.at >= begun
    assert store.prune(hours(25)) == Erased(0, 0, 0)
    assert len(notes(store)) == 1


def test_a_prune_that_breaks_off_keeps_its_account(store, small_chunks, monkeypatch):
    put(store, *(row(at=hours(i)) for i in range(25)))
    real, calls = erasing._delete, []

    def breaks_off(connection, ids):
        calls.append(real(connection, ids))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return calls[-1]

    monkeypatch.setattr(erasing, "_delete", breaks_off)
    with pytest.raises(KeyboardInterrupt):
        store.prune(hours(25))
    assert store.predictions.count() == 5
    assert [note.predictions for note in notes(store)] == [20]


def test_a_prune_that_breaks_off_between_two_chunks_has_cut_no_request_apart(store, monkeypatch):
    monkeypatch.setattr(erasing, "_CHUNK", 10)
    store.predictions.add([a_request(f"request-{i}", rows=7, at=hours(i)) for i in range(4)])
    real = erasing._record_progress

    def breaks_off(connection, erasure, total):
        if total.predictions > 14:
            raise KeyboardInterrupt
        real(connection, erasure, total)

    monkeypatch.setattr(erasing, "_record_progress", breaks_off)
    with pytest.raises(KeyboardInterrupt):
        store.prune(hours(9))
    left = [len(store.predictions.of_request(f"request-{i}")) for i in range(4)]
    assert left == [0, 0, 7, 7]
    monkeypatch.setattr(erasing, "_record_progress", real)
    assert store.prune(hours(9)) == Erased(14, 0, 0)


def test_a_request_goes_whole_where_only_a_part_of_it_is_older(store):
    rows = (a_prediction("both", 0, at=hours(1)), a_prediction("both", 1, at=hours(3)))
    store.predictions.add([LoggedRequest("both", "asked", rows)])
    assert store.prune(hours(2)) == Erased(2, 0, 0)


def test_others_write_between_two_chunks(on_sqlite, small_chunks, monkeypatch):
    put(on_sqlite, *(row(at=hours(i)) for i in range(25)))
    with Store(on_sqlite.url) as service:
        monkeypatch.setattr(erasing.time, "sleep", lambda _: put(service, row(at=hours(99))))
        assert on_sqlite.prune(hours(25)) == Erased(25, 0, 0)
    assert on_sqlite.predictions.count() == 2


def test_what_was_pruned_is_gone_from_the_file(on_sqlite, small_chunks):
    put(on_sqlite, *(row(at=hours(i), input={"text": f"secret-{i:03d}"}) for i in range(25)))
    assert b"secret-003" in file_bytes(on_sqlite)
    on_sqlite.prune(hours(24))
    left = file_bytes(on_sqlite)
    assert [i for i in range(25) if f"secret-{i:03d}".encode() in left] == [24]


@ON_SQLITE
def test_a_moment_without_a_time_zone_is_refused(store):
    with refuses(StoreError, "time zone"):
        store.prune(datetime(2026, 1, 1))
