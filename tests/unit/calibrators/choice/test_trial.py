"""Folds: by hand, against a count of every class, and for any sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.calibrators.choice.trial import random_folds


def dealt(labels, folds, seed=0):
    return random_folds(np.asarray(labels), folds, np.random.default_rng(seed))


def test_by_hand():
    fold = dealt([0] * 6 + [1] * 3, 3)
    assert np.bincount(fold).tolist() == [3, 3, 3]
    assert np.bincount(fold[6:]).tolist() == [1, 1, 1]


def test_a_class_goes_on_where_the_one_before_stopped():
    # Four rows of class 0 leave fold 4 empty, and the one row of class 1 fills it.
    fold = dealt([0, 0, 0, 0, 1], 5)
    assert sorted(fold.tolist()) == [0, 1, 2, 3, 4]
    assert fold[4] == 4


@settings(max_examples=150, deadline=None)
@given(
    labels=st.lists(st.integers(0, 6), min_size=1, max_size=80),
    folds=st.integers(2, 12),
    seed=st.integers(0, 99),
)
def test_no_two_folds_differ_by_more_than_a_row_in_all_or_in_a_rare_class(labels, folds, seed):
    fold = dealt(labels, folds, seed)
    assert fold.shape == (len(labels),)
    assert np.ptp(np.bincount(fold, minlength=folds)) <= 1
    for k in {k for k in labels if labels.count(k) < 2 * folds}:
        assert np.ptp(np.bincount(fold[np.array(labels) == k], minlength=folds)) <= 1


def test_the_seed_decides_and_nothing_else():
    labels = np.arange(40) % 3
    assert (dealt(labels, 5, 1) == dealt(labels, 5, 1)).all()
    assert (dealt(labels, 5, 1) != dealt(labels, 5, 2)).any()


def test_every_row_is_as_likely_in_every_fold():
    labels = np.repeat([0, 1], [20, 10])
    counts = np.zeros((30, 5))
    for seed in range(2000):
        counts[np.arange(30), dealt(labels, 5, seed)] += 1
    assert counts / 2000 == pytest.approx(np.full((30, 5), 0.2), abs=0.045)


def test_class_frequencies_of_folds_vary_as_those_of_random_rows_do():
    labels = np.repeat([0, 1], [500, 500])
    share = [labels[dealt(labels, 5, seed) == 0].mean() for seed in range(300)]
    # Without replacement: variance p q / m (1 - m / n) with m = 200 of n = 1000 rows.
    assert np.std(share) == pytest.approx(np.sqrt(0.25 / 200 * 0.8), rel=0.15)


def test_rows_of_one_class_do_not_stay_together():
    labels = np.zeros(100, dtype=int)
    together = np.mean([np.mean(np.diff(dealt(labels, 5, seed)) == 0) for seed in range(50)])
    assert together == pytest.approx(19 / 99, abs=0.03)
