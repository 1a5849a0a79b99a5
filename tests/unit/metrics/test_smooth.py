import numpy as np
import pytest

from calibrant.metrics import ece_smooth
from calibrant.metrics.resampling import null_tallies
from calibrant.metrics.seminorms import smoothed_size
from calibrant.metrics.smooth import tallies_smooth, tally_smooth
from calibrant.metrics.tally import tally_rows
from calibrant.testing import WORLDS, shifted_world


def slow_smooth(scores, events, sigma, points=4000):
    """The definition: smooth the residual with a reflected Gaussian, integrate its size."""
    grid = (np.arange(points) + 0.5) / points
    total = np.zeros(points)
    for score, event in zip(scores, events, strict=True):
        for shift in range(-3, 4):
            for image in (score + 2 * shift, -score + 2 * shift):
                total += (event - score) * np.exp(-0.5 * ((grid - image) / sigma) ** 2)
    return np.abs(total).mean() / (sigma * np.sqrt(2 * np.pi) * len(scores))


def test_the_figure_is_its_own_bandwidth():
    draw = WORLDS["binary"].draw(300, 0)
    result = ece_smooth(draw.labels, draw.probs)
    assert slow_smooth(draw.probs, draw.labels, result) == pytest.approx(result, abs=2e-4)


def test_many_smoothed_together_are_what_each_is_alone():
    draw = WORLDS["binary"].draw(500, 0)
    tally = tally_rows(draw.probs, draw.labels == 1)
    some = [tally, *null_tallies(tally, 40, np.random.default_rng(1))]
    result = tallies_smooth(some, points=512)
    assert result.shape == (41,)
    assert result == pytest.approx([tally_smooth(one, points=512) for one in some], abs=1e-12)


def test_smoothing_a_tally_equals_the_definition():
    draw = WORLDS["tied"].draw(200, 1)
    tally = tally_rows(draw.probs, draw.labels == 1)
    result = float(smoothed_size(tally, 0.05)(tally.residual))
    assert result == pytest.approx(slow_smooth(draw.probs, draw.labels, 0.05), rel=1e-3)


def test_one_score_gives_the_plain_gap():
    assert ece_smooth([1, 0, 0, 0], [0.5] * 4) == pytest.approx(0.25, abs=1e-4)


def test_a_large_sample_finds_the_known_error():
    draw = shifted_world(0.1).draw(200_000, 0)
    # Smoothing blurs the change of sign at 1/2, so a little less than 0.1 remains.
    assert 0.08 < ece_smooth(draw.labels, draw.probs) < 0.1


def test_a_calibrated_model_comes_near_zero_as_rows_grow():
    draw = WORLDS["calibrated"].draw(1_000_000, 0)
    assert ece_smooth(draw.labels, draw.probs) < 0.003


def test_moving_a_score_across_a_bin_edge_hardly_changes_it():
    draw = WORLDS["tied"].draw(500, 0)
    moved = np.clip(draw.probs + 1e-6, 0, 1)
    assert ece_smooth(draw.labels, moved) == pytest.approx(
        ece_smooth(draw.labels, draw.probs), abs=2e-5
    )
