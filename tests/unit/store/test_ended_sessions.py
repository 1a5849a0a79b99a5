"""Visits that were ended by hand."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select

from calibrant.store.schema import ended_visits

LATER = datetime.now(UTC) + timedelta(hours=8)


def test_a_visit_that_was_ended_stays_so(store):
    assert not store.visits.ended("one")
    for _ in range(2):  # twice is as good as once
        store.visits.end("one", expires=LATER)
    assert store.visits.ended("one")
    assert not store.visits.ended("two")


def test_visits_that_would_be_over_by_now_are_forgotten(store):
    store.visits.end("old", expires=datetime.now(UTC) - timedelta(seconds=1))
    store.visits.end("new", expires=LATER)
    with store._database.read() as connection:
        left = connection.execute(select(func.count()).select_from(ended_visits)).scalar_one()
    assert left == 1
    assert store.visits.ended("new")
