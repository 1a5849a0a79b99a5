"""Ids: unique, ordered by time, and UUIDs that others can read."""

import time
import uuid

from calibrant.store.records import new_id


def test_ids_are_uuids_of_version_7_with_the_time_in_front():
    before = time.time_ns() // 1_000_000
    made = uuid.UUID(new_id())
    assert made.version == 7
    assert made.variant == uuid.RFC_4122
    assert before <= made.int >> 80 <= time.time_ns() // 1_000_000


def test_later_ids_sort_after_earlier_ones_within_a_millisecond():
    made = []
    for _ in range(200):
        made.append(new_id())
        until = time.time_ns() + 2_000
        while time.time_ns() < until:
            pass
    assert made == sorted(made)


def test_no_two_ids_are_the_same():
    assert len({new_id() for _ in range(20_000)}) == 20_000
