"""A database that is away is said so, costs nothing that was acknowledged, and is found again."""

import pytest
from tests.guarantees.serving_databases import PostgresServer, Sqlite
from tests.guarantees.serving_outages import (
    files_full,
    hanging,
    locked,
    moved_away,
    outages,
    restored,
    server_full,
    stopped,
)
from tests.guarantees.serving_process import make_bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return make_bundle(tmp_path_factory.mktemp("bundle") / "made").path


@pytest.fixture(scope="module")
def server():
    made = PostgresServer()
    yield made
    made.close()


def test_postgresql_full_crashed_and_hanging(server, bundle, tmp_path):
    database = server.database()
    troubles = {
        "full": server_full(database), "crashed": stopped(server), "hanging": hanging(server),
    }  # fmt: skip
    found, load = outages(database, bundle, tmp_path / "run", troubles, seed=3)
    assert found.broken == {}
    assert found.retried > 0
    assert load.refused >= 4 * len(troubles)


def test_a_file_full_locked_moved_away_and_restored(bundle, tmp_path):
    (tmp_path / "db").mkdir()
    database = Sqlite(tmp_path / "db" / "calibrant.db")
    troubles = {
        "full": files_full, "locked": locked(database), "moved away": moved_away(database),
        "restored": restored(database),
    }  # fmt: skip
    found, load = outages(database, bundle, tmp_path / "run", troubles, seed=3)
    assert found.broken == {}
    assert found.retried > 0
    assert load.refused >= 4 * len(troubles)
