"""Rows by falling score."""

import numpy as np
import pytest

from calibrant.thresholds.proof.ranked import rank_rows


def test_rows_are_sorted_and_ties_end_together():
    rows = rank_rows(np.array([0.2, 0.9, 0.5, 0.5]), np.array([False, True, True, False]))
    assert rows.score.tolist() == [0.9, 0.5, 0.5, 0.2]
    assert rows.ends.tolist() == [1, 3, 4]
    assert rows.hits[rows.ends - 1].tolist() == [1, 2, 2]


def test_the_gap_at_a_position_is_the_scores_on_both_sides():
    rows = rank_rows(np.array([0.2, 0.9, 0.5, 0.5]), np.array([False, True, True, False]))
    assert [rows.gap_at(k) for k in (1, 3)] == [(0.5, 0.9), (0.2, 0.5)]
    assert rows.gap_at(4) == (-np.inf, 0.2)
    assert rows.gap_at(0) == (0.9, np.inf)


def test_the_order_of_rows_plays_no_part_even_in_ties():
    rng = np.random.default_rng(2)
    score, event = np.round(rng.random(300), 1), rng.random(300) < 0.4
    weight = rng.integers(1, 4, 300).astype(float)
    first = rank_rows(score, event, weight, rng=7)
    mixed = rng.permutation(300)
    second = rank_rows(score[mixed], event[mixed], weight[mixed], rng=7)
    assert np.array_equal(first.event, second.event)
    assert np.array_equal(first.weight, second.weight)


def test_ties_are_mixed_evenly():
    event = np.r_[np.ones(50, bool), np.zeros(50, bool)]
    first = [rank_rows(np.full(100, 0.5), event, rng=seed).event[:50].sum() for seed in range(400)]
    # 25 are expected in the first half; the mean of 400 draws has a standard error of 0.13.
    assert abs(np.mean(first) - 25) < 0.5
    assert np.std(first) == pytest.approx(np.sqrt(100 / 99 * 50 / 8), rel=0.15)


def test_weights_stay_with_their_rows():
    rng = np.random.default_rng(0)
    event = rng.random(200) < 0.5
    rows = rank_rows(np.round(rng.random(200), 1), event, np.where(event, 3.0, 1.0))
    assert np.array_equal(rows.weight, np.where(rows.event, 3.0, 1.0))
