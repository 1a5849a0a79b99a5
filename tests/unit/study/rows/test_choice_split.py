"""Halving the steer rows: nothing is lost, nothing is in both, and small data have a clear rule."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sentences import refuses

from calibrant.data.splitting import split_rows
from calibrant.errors import InputError
from calibrant.study.rows.choice_split import halve_steer

LABELS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=40)
GROUPED = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 9)), min_size=1, max_size=40)


def counts(labels, positions):
    return Counter(labels[place] for place in positions)


@given(LABELS, st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_every_class_is_halved_and_a_lone_row_steers(labels, seed):
    steer, choice = halve_steer(labels, n=len(labels), seed=seed)
    assert sorted([*steer, *choice]) == list(range(len(labels)))
    whole, chosen = Counter(labels), counts(labels, choice)
    for name, n in whole.items():
        assert chosen[name] in (n // 2, (n + 1) // 2)
        assert chosen[name] < n  # at least one steers
        assert (chosen[name] == 0) == (n == 1)


@given(GROUPED, st.integers(0, 5))
@settings(max_examples=100, deadline=None)
def test_groups_stay_together_whatever_they_hold(rows, seed):
    labels, groups = zip(*rows, strict=True)
    steer, choice = halve_steer(labels, groups=groups, seed=seed)
    assert sorted([*steer, *choice]) == list(range(len(labels)))
    assert not {groups[i] for i in steer} & {groups[i] for i in choice}


def test_the_halves_are_in_order_and_alike_for_one_seed_only():
    labels = ["a"] * 60 + ["b"] * 40
    one, same, other = (halve_steer(labels, n=100, seed=seed) for seed in (0, 0, 1))
    for half, again in zip(one, same, strict=True):
        np.testing.assert_array_equal(half, again)
        np.testing.assert_array_equal(half, np.sort(half))
    assert not np.array_equal(one[1], other[1])
    assert counts(labels, one[1]) == {"a": 30, "b": 20}


def test_a_class_of_one_group_stays_with_the_steer_rows_and_takes_the_group_along():
    labels = ["rare", "a", "a", "a", "a", "a"]
    groups = ["g", "g", "h", "i", "j", "k"]
    steer, choice = halve_steer(labels, groups=groups)
    assert {0, 1} <= set(steer)
    assert counts(labels, choice) == {"a": 2}


def test_a_class_that_is_left_in_one_group_stays_too():
    # "b" stands in g, which stays for "rare", and in h: h alone cannot be halved.
    labels = ["rare", "b", "b", "a", "a", "a", "a"]
    groups = ["g", "g", "h", "i", "j", "k", "l"]
    steer, choice = halve_steer(labels, groups=groups)
    assert {0, 1, 2} <= set(steer)
    assert counts(labels, choice) == {"a": 2}


def test_a_row_without_a_group_stands_for_itself():
    steer, choice = halve_steer(["a"] * 6, groups=["g", None, None, "g", None, None])
    assert len(steer) == len(choice) == 3
    assert (0 in steer) == (3 in steer)


def test_groups_too_large_to_part_every_class_are_halved_without_regard_to_classes():
    # Wherever the groups go, one half lacks a class.
    labels = ["a", "b", "b", "c", "c", "a"]
    groups = ["g", "g", "h", "h", "i", "i"]
    with refuses(InputError, "groups", "class 'c'", "smaller groups"):
        split_rows(labels, (1, 1), groups=groups)
    steer, choice = halve_steer(labels, groups=groups)
    assert {len(steer), len(choice)} == {2, 4}
    assert not {groups[i] for i in steer} & {groups[i] for i in choice}


def test_where_every_class_is_alone_nothing_is_left_to_choose_on():
    steer, choice = halve_steer(["a", "b", "c"], n=3)
    assert (steer.tolist(), choice.tolist()) == ([0, 1, 2], [])


def test_the_later_half_chooses_and_one_moment_cannot_be_halved():
    steer, choice = halve_steer(["a", "b", "a", "b"], times=[4, 1, 2, 3])
    assert (steer.tolist(), choice.tolist()) == ([1, 2], [0, 3])
    with refuses(InputError, "times", "only 1 distinct", "finer times"):
        halve_steer(["a", "b"], times=[1, 1])


def test_without_classes_rows_are_halved_at_random():
    steer, choice = halve_steer(None, n=100)
    assert len(steer) == len(choice) == 50
    assert not np.array_equal(steer, np.arange(50))
