"""The store as a whole: opened, shared by threads, checked, and told away from what is gone."""

import threading
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest
from sqlalchemy import text
from tests.databases import (
    a_request,
    many_requests,
    new_store,
    postgresql_away,
    record_bundle,
    run_postgresql,
)
from tests.sentences import refuses
from tests.unit.store.rows import label, outcome, put, row

from calibrant.errors import StoreError, StoreUnavailable
from calibrant.store import Erased, Store, StoreCounts


def test_a_store_that_was_opened_is_ready_and_stays_so(blank_url):
    with Store.open(blank_url) as store:
        store.check()
        record_bundle(store).predictions.add([a_request()])
    with Store.open(blank_url) as store:
        store.check()
        assert store.predictions.count() == 1


def test_making_a_store_touches_nothing(tmp_path):
    with Store(tmp_path / "calibrant.db"):
        assert list(tmp_path.iterdir()) == []


def test_a_bare_path_and_a_url_are_the_same_store(tmp_path):
    path = tmp_path / "with space #1.db"
    with Store.open(path) as store:
        record_bundle(store).predictions.add([a_request()])
        assert store.url == f"sqlite:///{path}"
    with Store.open(f"sqlite:///{path}") as store:
        assert store.predictions.count() == 1


def test_a_store_stays_where_it_was_when_the_process_moves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store.open("calibrant.db") as store:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        store.close()
        store.check()
    assert (tmp_path / "calibrant.db").is_file()


def test_a_store_shows_no_password():
    store = Store("postgresql://service:hunter2@db.example/log")
    assert store.url == "postgresql://service:***@db.example/log"


def test_a_store_that_was_closed_opens_again_by_itself(store):
    store.predictions.add([a_request()])
    store.close()
    assert store.predictions.count() == 1


def test_a_store_without_tables_is_not_ready(blank_url):
    store = Store(blank_url)
    with pytest.raises(StoreUnavailable):
        store.check()
    with pytest.raises(StoreError):
        store.predictions.count()
    store.prepare()
    store.check()
    store.close()


def test_a_file_that_was_removed_is_noticed(tmp_path):
    with Store.open(tmp_path / "calibrant.db") as store:
        (tmp_path / "calibrant.db").rename(tmp_path / "moved.db")
        with refuses(StoreUnavailable, "removed", "restore"):
            store.check()
        (tmp_path / "moved.db").rename(tmp_path / "calibrant.db")
        store.check()


def test_a_file_that_was_replaced_gets_hashes_of_its_own(tmp_path):
    """Hashes that were made before must not get into the new file."""
    path = tmp_path / "calibrant.db"
    with Store.open(path) as store:
        record_bundle(store).predictions.add([a_request()])
        old = store.keyed_hash(b"asked")
        for end in ("", "-wal", "-shm"):
            if (tmp_path / f"calibrant.db{end}").exists():
                (tmp_path / f"calibrant.db{end}").rename(tmp_path / f"old.db{end}")
        with Store.open(path) as other:
            new = record_bundle(other).keyed_hash(b"asked")
        assert new != old
        with refuses(StoreUnavailable, "removed or replaced"):
            store.predictions.add([a_request(hash=old)])
        assert store.keyed_hash(b"asked") == new
        store.predictions.add([a_request(hash=new)])


def test_hashes_of_another_store_are_not_written(store):
    """Whoever restores a database may leave the connections of a service to be made anew."""
    old = store.keyed_hash(b"asked")
    with store._database.write() as connection:
        connection.execute(text(f"UPDATE settings SET value = '{'ab' * 32}'"))
    store.close()
    with refuses(StoreUnavailable, "replaced", "try again"):
        store.predictions.add([a_request(hash=old)])
    assert store.predictions.count() == 0
    assert store.keyed_hash(b"asked") != old
    store.predictions.add([a_request()])


def test_a_new_connection_reads_the_secret_anew(tmp_path):
    with new_store("postgresql", tmp_path) as url, Store(url) as store:
        old = store.keyed_hash(b"asked")
        with store._database.write() as connection:
            connection.execute(text(f"UPDATE settings SET value = '{'ab' * 32}'"))
        name = store._database.engine.url.database
        run_postgresql(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        )
        store.check()
        assert store.keyed_hash(b"asked") != old


def test_a_server_that_is_away_is_noticed_and_so_is_its_return(tmp_path):
    with new_store("postgresql", tmp_path) as url, Store(url) as store:
        store.check()
        with postgresql_away():
            for use in (store.check, store.prepare, store.predictions.count):
                with pytest.raises(StoreUnavailable):
                    use()
        store.check()


def test_tables_of_another_version_are_noticed(store):
    with store._database.write() as connection:
        connection.execute(text("UPDATE schema_version SET version_num = 'x'"))
    with refuses(StoreUnavailable, "version x"):
        store.check()


def test_threads_may_share_a_store(store):
    failed = []

    def work(number):
        try:
            for i in range(5):
                request = a_request(f"{number}-{i}", unit=f"unit-{number}")
                store.predictions.add([request])
                assert store.predictions.of_request(request.id) == request.predictions
                assert len(store.predictions.search(unit=f"unit-{number}")) == i + 1
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert store.predictions.count() == 40


def test_forgetting_pruning_and_exporting_reach_the_rows(store, tmp_path):
    start = datetime(2026, 1, 1, tzinfo=UTC)
    store.predictions.add(many_requests(6, start=start, every=timedelta(days=1)))
    store.predictions.add([a_request("other", unit="customer-18", at=start)])
    assert store.export(tmp_path / "log.parquet", since=start + timedelta(days=1)) == 5
    assert pq.read_table(tmp_path / "log.parquet").num_rows == 5
    assert store.prune(start + timedelta(days=2)) == Erased(3, 0, 0)
    assert store.forget("customer-17") == Erased(4, 0, 0)
    assert store.predictions.count() == 0


def test_keys_are_kept_with_the_store(store):
    key, token = store.keys.add("shop", "predict")
    assert store.keys.check(token).id == key.id


def test_a_session_that_ended_is_known(store):
    store.visits.end("5d41", expires=datetime.now(UTC) + timedelta(hours=8))
    assert store.visits.ended("5d41")
    assert not store.visits.ended("77b2")


def test_each_table_is_counted_and_revoked_keys_are_not(store):
    assert store.counts() == StoreCounts(predictions=0, labels=0, outcomes=0, bundles=1, keys=0)
    rows = put(store, *(row() for _ in range(5)))
    store.outcomes.add([outcome(rows[0])], [label(one) for one in rows[:3]])
    store.keys.add("shop", "predict")
    gone, _ = store.keys.add("old shop", "predict")
    store.keys.revoke(gone.id)
    assert store.counts() == StoreCounts(predictions=5, labels=3, outcomes=1, bundles=2, keys=1)
