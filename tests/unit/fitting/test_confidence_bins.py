"""Bins of confidence: edges, look-up and figures."""

import numpy as np
import pytest

from calibrant.fitting.confidence_bins import (
    bin_figures,
    even_edges,
    find_bins,
    interpolated_edges,
    rank_edges,
    released_bins,
)


def bins_of(scores, edges):
    return find_bins(scores, edges).tolist()


def test_even_edges_are_the_same_bins_on_both_scales():
    odds, probs = even_edges(15, "log-odds"), even_edges(15, "probability")
    assert 1 / (1 + np.exp(-odds)) == pytest.approx(probs, abs=1e-15)
    assert probs[[0, -1]] == pytest.approx([1 / 15, 14 / 15])
    assert len(even_edges(1, "log-odds")) == 0


def test_without_ties_bins_are_the_rank_split():
    scores = np.sort(np.random.default_rng(0).normal(size=103))
    found = bins_of(scores, rank_edges(scores, 10))
    assert found == [rank * 10 // 103 for rank in range(103)]


def test_ties_stay_together_and_no_score_is_lost():
    draw = np.random.default_rng(0)
    for levels in (1, 2, 5, 30):
        scores = np.sort(draw.integers(0, levels, 200).astype(float))
        edges = rank_edges(scores, 15)
        assert (np.diff(edges[np.isfinite(edges)]) >= 0).all()
        found = np.array(bins_of(scores, edges))
        for value in np.unique(scores):
            assert len(set(found[scores == value])) == 1
        assert (np.diff(found) >= 0).all()


def test_bins_are_merged_until_each_can_hold_the_minimum():
    scores = np.arange(100.0)
    count = np.bincount(bins_of(scores, rank_edges(scores, 15, min_count=20)), minlength=15)
    assert count.tolist() == [20, 0, 0, 20, 0, 0, 20, 0, 0, 20, 0, 0, 20, 0, 0]
    enough = rank_edges(scores, 5, min_count=20)
    assert enough.tolist() == rank_edges(scores, 5).tolist()
    assert bins_of(scores, rank_edges(scores, 15, min_count=101)) == [0] * 100


def test_one_score_is_enough_for_edges():
    assert rank_edges(np.array([0.3]), 4).tolist() == [np.inf] * 3
    assert interpolated_edges(np.array([0.3]), 4).tolist() == [0.3] * 5


def test_interpolated_edges_by_hand():
    edges = interpolated_edges(np.array([0.1, 0.2, 0.4, 0.8]), 3)  # read at 0, 4/3, 8/3, 4
    assert edges == pytest.approx([0.1, 0.2 + 0.2 / 3, 0.4 + 0.4 * 2 / 3, 0.8])


def test_released_bins_drop_the_smallest_score_and_all_its_ties():
    scores = np.array([0.5, 0.5, 0.6, 0.7, 0.8, 0.9])
    edges = interpolated_edges(scores, 3)  # 0.5, 0.6, 0.8, 0.9
    assert released_bins(scores, edges).tolist() == [-1, -1, 0, 1, 1, 2]
    constant = np.full(6, 0.9)
    assert released_bins(constant, interpolated_edges(constant, 3)).tolist() == [-1] * 6


def test_figures_by_hand():
    found = bin_figures(
        np.array([-1, 0, 0, 2]),
        np.array([0.5, 0.6, 0.8, 0.9]),
        np.array([True, True, False, True]),
        3,
    )
    assert found.count.tolist() == [2, 0, 1]
    assert found.confidence == pytest.approx([0.7, np.nan, 0.9], nan_ok=True)
    assert found.accuracy == pytest.approx([0.5, np.nan, 1.0], nan_ok=True)
    assert found.error == pytest.approx([0.2, np.nan, -0.1], nan_ok=True)
