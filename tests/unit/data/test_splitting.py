"""Splitting rows: shares, classes, groups, time, and one sentence where it cannot be done."""

import datetime
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data_sets import data_file
from tests.sentences import refuses

from calibrant.data import read_rows, split_rows
from calibrant.data.row_identity import content_groups
from calibrant.errors import InputError

SHARES = st.lists(st.integers(1, 9), min_size=2, max_size=5)


def of(labels, parts):
    """Return for each class its rows in each part."""
    labels = np.asarray(labels)
    return {c: [int((labels[part] == c).sum()) for part in parts] for c in np.unique(labels)}


def check_whole(parts, n):
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(n))
    for part in parts:
        assert part.dtype == np.int64
        assert (np.diff(part) > 0).all()


# --- by class -------------------------------------------------------------------------------------


def test_a_split_by_hand():
    labels = ["a"] * 80 + ["b"] * 20
    parts = split_rows(labels)
    check_whole(parts, 100)
    assert of(labels, parts) == {"a": [64, 8, 8], "b": [16, 2, 2]}


def test_remainders_go_where_most_is_missing():
    labels = np.repeat(np.arange(10), 15)  # each class: 12, 1.5, 1.5
    parts = split_rows(labels)
    assert [len(part) for part in parts] == [120, 15, 15]
    assert set(map(tuple, of(labels, parts).values())) == {(12, 1, 2), (12, 2, 1)}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(1, 400), min_size=1, max_size=12), SHARES, st.integers(0, 5))
def test_every_class_and_the_whole_have_their_shares(sizes, shares, seed):
    sizes = [max(size, len(shares)) for size in sizes]
    labels = np.repeat(np.arange(len(sizes)), sizes)
    parts = split_rows(labels, shares, seed=seed)
    check_whole(parts, len(labels))
    quota = np.array(shares) / sum(shares)
    counts = np.array(list(of(labels, parts).values()))
    assert counts.min() >= 1
    large = np.array(sizes) * quota.min() >= 1
    wanted = np.array(sizes)[:, None] * quota
    assert (np.abs(counts - wanted)[large] < 1).all()
    if large.all():
        assert (np.abs(counts.sum(axis=0) - wanted.sum(axis=0)) < 1.5).all()


def test_the_same_seed_splits_alike_and_another_otherwise():
    labels = np.arange(1000) % 3
    first, again, other = (split_rows(labels, seed=seed) for seed in (7, 7, 8))
    assert all(map(np.array_equal, first, again))
    assert not np.array_equal(first[0], other[0])


def test_names_of_classes_do_not_matter():
    labels = np.arange(1000) % 3
    plain = split_rows(labels, seed=3)
    for renamed in (
        np.array(["x", "a", "é"])[labels].tolist(),
        pa.chunked_array([labels[:10] * 1.5, labels[10:] * 1.5]),
        pa.array(np.array(["b", "a", "c"])[labels]).dictionary_encode(),
    ):
        assert all(map(np.array_equal, plain, split_rows(renamed, seed=3)))


def test_rows_are_drawn_evenly():
    counts = np.zeros(20)
    for seed in range(2000):
        counts[split_rows([0] * 20, (1, 3), seed=seed)[0]] += 1
    # 5 of 20 rows: a binomial of 2000 draws at 1/4; 4.5 standard deviations
    assert np.abs(counts - 500).max() < 4.5 * np.sqrt(2000 * 0.25 * 0.75)


def test_without_labels_rows_are_split_at_random():
    parts = split_rows(None, (3, 1), n=101)
    check_whole(parts, 101)
    assert [len(part) for part in parts] == [76, 25]


def test_a_class_with_fewer_rows_than_parts_is_named():
    with refuses(InputError, "class 'rare'", "only 2 rows", "3 parts", "merge it"):
        split_rows(["a"] * 50 + ["rare"] * 2)
    with refuses(InputError, "only 1 row, which"):
        split_rows(["a"] * 50 + ["rare"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"labels": None}, ("give the number of rows as n",)),
        ({"labels": [0] * 9, "n": 8}, ("agree", "number", "rows", "got 9 and 8")),
        ({"labels": [0] * 9, "groups": [1]}, ("agree", "number", "rows", "got 9 and 1")),
        ({"labels": [0, 0]}, ("2 rows cannot", "split", "3 parts")),
        ({"labels": [0] * 9, "shares": (1,)}, ("shares", "two", "more numbers above 0")),
        ({"labels": [0] * 9, "shares": (1, 0)}, ("shares", "two", "more numbers above 0")),
        ({"labels": [0] * 9, "shares": (1, float("nan"))}, ("shares", "two", "more numbers")),
        ({"labels": [0] * 9, "shares": "8:1"}, ("shares", "two", "more numbers above 0")),
        ({"labels": [0] * 9, "seed": -1}, ("seed", "whole number >= 0", "got -1")),
        ({"labels": [0, None, 1]}, ("labels row 1", "missing", "drop")),
        ({"labels": [0.0, float("nan"), 1.0]}, ("labels row 1", "missing")),
        ({"labels": ["a", 1, 2]}, ("labels", "column", "type")),
        ({"labels": [0] * 9, "groups": [0] * 9, "times": [0] * 9}, ("groups", "times cannot be")),
    ],
)
def test_what_cannot_be_split_is_one_sentence(arguments, says):
    with refuses(InputError, *says):
        split_rows(**arguments)


# --- with groups ----------------------------------------------------------------------------------


def test_groups_by_hand():
    parts = split_rows(None, (2, 1), groups=["x", "x", "x", "x", "y", "y"])
    assert [part.tolist() for part in parts] == [[0, 1, 2, 3], [4, 5]]


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), SHARES, st.integers(1, 4))
def test_groups_stay_together(world, shares, n_classes):
    rng = np.random.default_rng(world)
    groups = rng.integers(0, 150, 600)
    labels = rng.integers(0, n_classes, 600)
    parts = split_rows(labels, shares, groups=groups, seed=1)
    check_whole(parts, 600)
    seen = [set(groups[part]) for part in parts]
    assert sum(map(len, seen)) == len(set(groups))
    wanted = np.array(shares) / sum(shares) * 600
    assert np.abs([len(part) for part in parts] - wanted).max() <= 12
    assert all(min(counts) > 0 for counts in of(labels, parts).values())


def test_groups_of_any_size_are_spread_about_in_proportion():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(3000), rng.geometric(0.3, 3000))
    labels = np.where(rng.random(len(groups)) < 0.05, "rare", "common")
    parts = split_rows(labels, groups=groups)
    for counts in of(labels, parts).values():
        np.testing.assert_allclose(np.array(counts) / sum(counts), [0.8, 0.1, 0.1], atol=0.01)
    sizes = np.bincount(groups)
    mean = [sizes[np.unique(groups[part])].mean() for part in parts]
    assert max(mean) / min(mean) < 1.35  # small groups are not all in the small parts


def test_a_huge_group_goes_to_the_large_part():
    groups = np.concatenate([np.zeros(500), np.arange(1, 501)])
    train, steer, test = split_rows(None, groups=groups)
    assert np.isin(np.arange(500), train).all()
    assert [len(train), len(steer), len(test)] == [800, 100, 100]


def test_groups_of_one_row_are_split_as_classes_are():
    labels = ["a"] * 80 + ["b"] * 20
    parts = split_rows(labels, groups=np.arange(100))
    assert of(labels, parts) == {"a": [64, 8, 8], "b": [16, 2, 2]}


def test_rows_without_a_group_stand_for_themselves():
    parts = split_rows(None, (1, 1), groups=pa.array(["x"] * 4 + [None] * 4))
    assert sorted(map(len, parts)) == [4, 4]
    assert [0, 1, 2, 3] in [part.tolist() for part in parts]


def test_groups_follow_the_seed():
    groups = np.arange(600) // 3
    first, again, other = (split_rows(None, groups=groups, seed=seed) for seed in (1, 1, 2))
    assert all(map(np.array_equal, first, again))
    assert not np.array_equal(first[0], other[0])


def test_a_class_in_too_few_groups_is_named():
    labels = ["a"] * 60 + ["b"] * 10
    groups = [*range(60), *[60] * 5, *[61] * 5]
    with refuses(InputError, "rows of class 'b'", "only 2 groups", "3 parts"):
        split_rows(labels, groups=groups)
    with refuses(InputError, "only 1 group, which"):
        split_rows(None, groups=[0] * 9)


def test_every_part_gets_a_row_of_every_class():
    labels = np.array(["a"] * 300 + ["b"] * 3)
    groups = np.array([*np.arange(300) // 3, 1000, 1001, 1002])
    for seed in range(20):
        parts = split_rows(labels, (20, 1, 1), groups=groups, seed=seed)
        assert of(labels, parts)["b"] == [1, 1, 1]


# --- by time --------------------------------------------------------------------------------------


def test_times_by_hand():
    times = [5, 3, 1, 4, 2]
    assert [part.tolist() for part in split_rows(None, (3, 1, 1), times=times)] == [
        [1, 2, 4],
        [3],
        [0],
    ]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=30, max_size=200), SHARES)
def test_parts_follow_each_other_and_moments_stay_together(times, shares):
    times = np.array(times)
    if len(np.unique(times)) < len(shares):
        return
    parts = split_rows(None, shares, times=times)
    check_whole(parts, len(times))
    for before, after in pairwise(parts):
        assert times[before].max() < times[after].min()


def test_cuts_lie_nearest_to_the_shares():
    times = np.repeat([1, 2, 3], [10, 80, 10])
    assert [len(p) for p in split_rows(None, (3, 2), times=times)] == [90, 10]
    assert [len(p) for p in split_rows(None, (1, 4), times=times)] == [10, 90]


def test_times_of_any_kind_agree():
    days = [
        datetime.date(2024, 1, 1) + datetime.timedelta(days=int(d)) for d in [9, 2, 30, 4, 7, 1]
    ]
    expected = split_rows(None, (1, 1), times=[9, 2, 30, 4, 7, 1])
    for times in (
        days,
        [day.isoformat() for day in days],
        [f"{day}T10:00:00Z" for day in days],
        np.array(days, dtype="datetime64[ns]"),
        pa.array(days).cast(pa.timestamp("s", "UTC")),
        pa.chunked_array([days[:2], days[2:]]),
        pa.array([day.toordinal() * 1000 + 1 for day in days]).cast(pa.timestamp("ns")),
        [f"{day}T10:00:00.000000123" for day in days],
        [f"{day}T10:00:00.000000123Z" for day in days],
    ):
        assert all(map(np.array_equal, expected, split_rows(None, (1, 1), times=times)))


@pytest.mark.parametrize(
    ("times", "says"),
    [
        ([1, None, 3], ("times row 1", "missing", "give", "drop")),
        ([1.0, 2.0, float("nan")], ("times row 2", "missing")),
        ([1, 1, 2], ("times", "2 distinct values")),
        (["2024-01-31", "soon", "c"], ("times row 1", "'soon'", "ISO 8601", "like 2024-01-31")),
        (
            ["2024-01-31T09:00Z", "2024-01-31T09:00", "2024-02-01"],
            ("times", "all", "time zone"),
        ),
        ([True, False, True], ("times", "numbers", "dates", "ISO 8601 text", "got bool")),
    ],
)
def test_times_that_cannot_be_ordered_are_refused(times, says):
    with refuses(InputError, *says):
        split_rows(None, times=times)


# --- real rows ------------------------------------------------------------------------------------


@pytest.mark.data
def test_equal_tickets_stay_together_and_every_group_of_tickets_keeps_its_share():
    table = read_rows(data_file("it_tickets", "it_tickets.parquet"))
    groups = content_groups(table, ["text"])
    labels = table["label_name"]
    parts = split_rows(labels, groups=groups)
    check_whole(parts, table.num_rows)
    assert sum(len(np.unique(groups[part])) for part in parts) == groups.max() + 1
    for counts in of(labels.to_pylist(), parts).values():
        np.testing.assert_allclose(np.array(counts) / sum(counts), [0.8, 0.1, 0.1], atol=0.005)
