import numpy as np
import pytest

from calibrant.metrics import ece, ece_sweep
from calibrant.metrics.resampling import null_tallies
from calibrant.metrics.sweep import MAX_BINS, all_sweep_edges, sweep_edges
from calibrant.metrics.tally import tally_rows
from calibrant.testing import WORLDS


def test_the_number_before_the_first_fall_is_used():
    labels, probs = [0, 1, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.9]
    # Three bins of two rows: rates 1/2, 1/2, 1. Four: 1/2 then 0, a fall.
    assert ece_sweep(labels, probs) == pytest.approx(ece(labels, probs, n_bins=3, scheme="mass"))


def test_two_bins_that_fall_leave_one():
    assert ece_sweep([1, 1, 0, 0], [0.1, 0.2, 0.8, 0.9]) == pytest.approx(0.0)


def test_sorted_labels_give_each_score_its_own_bin():
    labels, probs = [0, 0, 1, 1], [0.1, 0.4, 0.6, 0.7]
    assert ece_sweep(labels, probs) == pytest.approx((0.1 + 0.4 + 0.4 + 0.3) / 4)
    rng = np.random.default_rng(0)
    scores = np.sort(rng.random(200_000))
    assert ece_sweep(scores > 0.5, scores) == pytest.approx(
        np.abs((scores > 0.5) - scores).mean(), rel=1e-9
    )


@pytest.mark.parametrize("scheme", ["width", "mass"])
def test_rates_do_not_fall_with_the_bins_it_ends_with(scheme):
    draw = WORLDS["binary"].draw(2000, 0)
    tally = tally_rows(draw.probs, draw.labels == 1)
    edges = sweep_edges(tally, scheme)
    mass, hits = tally.per_bin(edges, tally.mass), tally.per_bin(edges, tally.hits)
    rate = hits[mass > 0] / mass[mass > 0]
    assert (np.diff(rate) >= 0).all()
    assert 2 < len(edges) <= MAX_BINS + 1


@pytest.mark.parametrize("scheme", ["width", "mass"])
@pytest.mark.parametrize("world", ["binary", "tied", "rare", "saturated"])
def test_many_swept_together_end_where_each_ends_alone(world, scheme):
    draw = WORLDS[world].draw(400, 0)
    weights = np.random.default_rng(0).lognormal(0, 1, 400)
    for mass in (None, weights):
        tally = tally_rows(draw.probs, draw.labels == 1, mass)
        drawn = null_tallies(tally, 30, np.random.default_rng(1))
        ordered = tally.redraw(tally.rows * (np.arange(len(tally.score)) > 5))
        some = [tally, *drawn, ordered]
        for one, result in zip(some, all_sweep_edges(some, scheme), strict=True):
            np.testing.assert_array_equal(result, sweep_edges(one, scheme))


def test_norm_two_is_at_least_norm_one():
    draw = WORLDS["binary"].draw(1000, 0)
    assert ece_sweep(draw.labels, draw.probs, norm=2) >= ece_sweep(draw.labels, draw.probs)


def test_a_calibrated_model_is_nearer_zero_than_with_fifteen_bins():
    draws = [WORLDS["calibrated"].draw(1000, seed) for seed in range(20)]
    sweep = np.mean([ece_sweep(d.labels, d.probs) for d in draws])
    plain = np.mean([ece(d.labels, d.probs, scheme="mass") for d in draws])
    assert sweep < plain
