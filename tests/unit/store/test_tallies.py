"""Counts by hour: which predictions they are about, and what they say of them."""

from datetime import datetime, timedelta, timezone

import pytest
from tests.sentences import refuses
from tests.unit.store.rows import START, hours, put, row

from calibrant.errors import StoreError
from calibrant.store import ActedCount, HourCount

MINUTE = timedelta(minutes=1)


@pytest.fixture
def filled(store):
    """Give a store with predictions of three hours and two bundles."""
    put(
        store,
        row(at=hours(0), probs=[0.75, 0.25]),
        row(at=hours(1) - MINUTE, probs=[0.5, 0.5], score=0.5),
        row(at=hours(1), decision="abstain", acted_as=None, score=0.55),
        row(at=hours(2), decision=None, acted_as=None, label="good", score=1.0),
        row(at=hours(2) + MINUTE, decision=None, acted_as=None, label="good", score=0.999),
    )
    other = row(at=hours(2), bundle="b2", probs=[0.25, 0.75], acted_as="good", score=0.05)
    put(store, other, bundle="b2")
    return store


def test_decisions_come_hour_by_hour_in_order(filled):
    assert filled.tallies.hours(START) == [
        HourCount(hours(0), "act", 2),
        HourCount(hours(1), "abstain", 1),
        HourCount(hours(2), None, 2),
        HourCount(hours(2), "act", 1),
    ]


def test_both_ends_are_whole_hours(filled):
    def found(since, until):
        return {count.hour for count in filled.tallies.hours(since, until)}

    assert found(hours(1) - MINUTE, hours(2)) == {hours(0), hours(1)}
    assert found(hours(1), hours(3) - MINUTE) == {hours(1)}
    assert found(hours(1) + MINUTE, hours(3)) == {hours(1), hours(2)}
    assert found(hours(1), hours(1) + MINUTE) == set()
    assert found(hours(3), None) == set()


def test_hours_are_those_of_utc_whatever_the_time_zone(filled):
    india = timezone(timedelta(hours=5.5))
    since = (hours(1) + MINUTE).astimezone(india)
    assert filled.tallies.hours(since)[0] == HourCount(hours(1), "abstain", 1)
    with refuses(StoreError, "time zone"):
        filled.tallies.hours(datetime(2026, 1, 1))


def test_acts_come_with_the_sum_of_their_probabilities(filled):
    assert filled.tallies.acted(START) == [ActedCount("bad", 2, 1.25), ActedCount("good", 1, 0.75)]
    assert filled.tallies.acted(hours(1)) == [ActedCount("good", 1, 0.75)]
    assert filled.tallies.acted(hours(1), hours(2)) == []


def test_scores_are_counted_in_twenty_bins_and_one_is_in_the_last(filled):
    counts = filled.tallies.scores(START)
    assert {place: n for place, n in enumerate(counts) if n} == {1: 1, 10: 1, 11: 1, 15: 1, 19: 2}
    assert filled.tallies.scores(hours(3)) == [0] * 20


def test_classes_are_counted_where_they_are_the_most_probable(filled):
    assert filled.tallies.labels(START) == [("bad", 4), ("good", 2)]


def test_one_bundle_can_be_asked_for(filled):
    tallies = filled.tallies
    assert tallies.hours(START, bundle="b2") == [HourCount(hours(2), "act", 1)]
    assert tallies.acted(START, bundle="b1") == [ActedCount("bad", 2, 1.25)]
    assert tallies.labels(START, hours(2), bundle="b1") == [("bad", 3)]
    assert sum(tallies.scores(START, bundle="b2")) == 1
    assert tallies.labels(START, bundle="never served") == []


def test_the_total_is_the_number_of_predictions(store, filled):
    assert filled.tallies.total() == filled.predictions.count() == 6
    filled.prune(hours(5))
    assert filled.tallies.total() == 0


def test_reading_counts_looks_at_no_prediction(filled):
    with filled._database.write() as connection:  # as if there were none
        connection.exec_driver_sql("DELETE FROM predictions")
    assert filled.tallies.total() == 6
    assert len(filled.tallies.hours(START)) == 4
    assert len(filled.tallies.acted(START)) == 2
    assert sum(filled.tallies.scores(START)) == 6
    assert len(filled.tallies.labels(START)) == 2
