"""Columns that both databases must treat alike."""

import random
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import insert, select
from tests.databases import a_request
from tests.sentences import refuses

from calibrant.errors import StoreError
from calibrant.store.database import Database
from calibrant.store.schema import LONGEST_NAME, erasures, predictions, utc


@pytest.fixture
def database(database_url):
    made = Database(database_url)
    yield made
    made.close()


def an_erasure(**changes):
    counts = {"predictions": 1, "labels": 2, "outcomes": 3}
    return {"id": "one", "at": datetime.now(UTC), **counts, **changes}


def test_moments_come_back_in_utc_to_the_microsecond(database):
    moment = datetime(2026, 3, 29, 1, 59, 59, 123456, tzinfo=timezone(timedelta(hours=5.5)))
    with database.write() as connection:
        connection.execute(insert(erasures).values(**an_erasure(at=moment)))
    with database.read() as connection:
        (found, before) = connection.execute(select(erasures.c.at, erasures.c.before)).one()
        later = select(erasures.c.id).where(erasures.c.at > moment - timedelta(microseconds=1))
        assert connection.execute(later).scalars().all() == ["one"]
    assert found == moment
    assert found.tzinfo is UTC
    assert before is None


def test_a_moment_without_a_time_zone_is_refused(database):
    with (
        refuses(StoreError, "2026-01-31T12:00:00", "time zone"),
        database.write() as connection,
    ):
        connection.execute(insert(erasures).values(**an_erasure(at=datetime(2026, 1, 31, 12))))


def a_long_name(seed):
    """Return a name as long as may be, of characters of four bytes that cannot be packed."""
    chance = random.Random(seed)
    return "".join(chr(chance.randrange(0x20000, 0x2A6D0)) for _ in range(LONGEST_NAME))


@pytest.mark.parametrize("name", ["unit", "use_case", "label"])
def test_names_as_long_as_an_index_holds_are_kept_and_longer_ones_are_refused(store, name):
    names = {other: a_long_name(other) for other in ("unit", "use_case", "label")}
    longest = names[name]
    store.predictions.add([a_request(**names)])
    assert getattr(store.predictions.of_request("request-1")[0], name) == longest
    with pytest.raises(StoreError, match="limited to 200 characters"):
        store.predictions.add([a_request("request-2", **{name: f"{longest}ß"})])
    assert store.predictions.count() == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"score": 1.01}, "score_is_probability"),
        ({"score": -0.01}, "score_is_probability"),
        ({"decision": "perhaps"}, "decision_known"),
        ({"label": None}, "label"),
        ({"logits": None}, "logits"),
    ],
)
def test_rows_that_break_a_rule_are_refused(store, changes, words):
    with pytest.raises(StoreError, match=words):
        store.predictions.add([a_request(**changes)])
    assert store.predictions.count() == 0


def test_every_column_of_a_prediction_has_its_place(store):
    assert set(predictions.c.keys()) == {
        *a_request().predictions[0].__slots__,
        "request_hash",
    }


def test_example_of_utc():
    assert (
        utc(datetime.fromisoformat("2026-01-31T12:00+02:00")).isoformat()
        == "2026-01-31T10:00:00+00:00"
    )
