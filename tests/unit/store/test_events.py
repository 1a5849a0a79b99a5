"""Events: each is kept as it was told, in the order in which they were told."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from tests.databases import ON_SQLITE
from tests.sentences import refuses
from tests.unit.store.rows import hours, put, row

from calibrant.errors import InputError, StoreError
from calibrant.store import EventLog, events


def told(store, kind="point_saved", subject="returns", **changes):
    return store.events.add(kind, **{"key": None, "subject": subject, "details": {}, **changes})


def test_an_event_comes_out_as_it_went_in(store):
    details = {"class": "größer", "hold": ["precision>=0.85"], "k": 3, "reason": None}
    start = datetime.now(UTC)
    made = told(store, key="abc123abc123", details=details, before="3f0a", after="77b2")
    assert store.events.get(made.id) == made
    assert (made.kind, made.subject, made.key) == ("point_saved", "returns", "abc123abc123")
    assert (made.before, made.after, made.details) == ("3f0a", "77b2", details)
    assert start <= made.at <= datetime.now(UTC)
    assert store.events.get("nothing") is None


def test_the_newest_come_first_and_can_be_picked_by_kind_and_subject(store):
    a, b, c, d = (
        told(store, kind, subject)
        for kind, subject in (("x", "one"), ("y", "one"), ("x", "two"), ("z", "one"))
    )
    latest = store.events.latest
    assert latest() == [d, c, b, a]
    assert latest(limit=2) == [d, c]
    assert latest(subject="one") == [d, b, a]
    assert latest(kinds=["x"]) == [c, a]
    assert latest(kinds=("x", "y"), subject="one", limit=1) == [b]
    assert latest(kinds=[]) == latest(subject="three") == []


def test_order_is_that_of_adding_also_where_the_clock_goes_back(store, monkeypatch):
    clock = itertools.count()

    class Backwards(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 1, 1, tzinfo=tz) - timedelta(days=next(clock))

    monkeypatch.setattr(events, "datetime", Backwards)
    made = [told(store) for _ in range(3)]
    assert made[0].at > made[2].at
    assert store.events.latest() == made[::-1]


def test_no_limit_gives_all_and_one_below_one_is_refused(store):
    made = [told(store, details={"i": i}) for i in range(60)]
    assert len(store.events.latest()) == 50
    assert store.events.latest(limit=None) == made[::-1]
    with refuses(InputError, "limit", "at least 1", "got 0"):
        store.events.latest(limit=0)


def test_several_that_add_at_once_all_get_a_place(store):
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda i: told(store, details={"i": i}), range(24)))
    assert {each.id for each in store.events.latest()} == {each.id for each in made}


@pytest.mark.parametrize(
    "changes",
    [
        {"details": {"x": float("nan")}},
        {"details": {"x": "a\0b"}},
        {"subject": "a\0b"},
        {"subject": "s" * 201},
        {"kind": "k" * 201},
    ],
)
@ON_SQLITE
def test_an_event_that_cannot_be_stored_is_refused(store, changes):
    with pytest.raises(StoreError):
        told(store, **changes)
    assert store.events.latest() == []


def test_nothing_changes_or_erases_an_event(store):
    """There is no verb for it, and what erases predictions leaves events alone."""
    put(store, row(unit="customer-17"))
    made = told(store)
    store.forget("customer-17")
    store.prune(hours(9_999_999 // 24))
    assert store.events.latest() == [made]
    assert {name for name in vars(EventLog) if not name.startswith("_")} == {"add", "get", "latest"}
