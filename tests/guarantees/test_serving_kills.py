"""Nothing acknowledged is lost or doubled by kill -9; `make guarantees` kills more often."""

import random

import pytest
from tests.guarantees.serving_databases import PostgresServer, Sqlite
from tests.guarantees.serving_kills import kill_again_and_again, kill_while_starting
from tests.guarantees.serving_process import make_bundle
from tests.guarantees.serving_wrong_ways import program

KILLS = 3


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return make_bundle(tmp_path_factory.mktemp("bundle") / "made").path


@pytest.fixture(scope="module")
def server():
    made = PostgresServer()
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    if request.param == "sqlite":
        return Sqlite(tmp_path / "calibrant.db")
    return request.getfixturevalue("server").database()


def test_what_was_acknowledged_survives_kills(database, bundle, tmp_path):
    found = kill_again_and_again(database, bundle, tmp_path / "run", kills=KILLS, seed=1)
    assert found.broken == {}
    assert found.acknowledged > 0
    assert found.rows > found.acknowledged
    assert found.retried > 0


@pytest.mark.parametrize(
    ("database", "how"),
    [("sqlite", ("worker", "supervisor")), ("postgresql", ("worker",))],
    indirect=["database"],
)
def test_several_processes_write_each_request_once(database, bundle, tmp_path, how):
    found = kill_again_and_again(
        database, bundle, tmp_path / "run", kills=len(how), seed=2, workers=2, how=how
    )
    assert found.broken == {}
    assert found.acknowledged > 0
    assert found.rows > found.acknowledged  # whoever was killed may have had nothing to do


def test_a_start_that_was_killed_leaves_nothing_half_done(bundle, tmp_path):
    draw = random.Random(6)
    for i in range(2):
        database = Sqlite(tmp_path / f"{i}.db")
        kill_while_starting(database, bundle, tmp_path / "run", draw)


def test_a_service_that_answers_before_it_writes_is_caught(bundle, tmp_path):
    found = kill_again_and_again(
        Sqlite(tmp_path / "calibrant.db"), bundle, tmp_path / "run", kills=1, seed=7,
        program=program("answers before it writes"),
    )  # fmt: skip
    assert found.lost
