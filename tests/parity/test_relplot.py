"""relplot: smooth ECE agrees within the resolution of its search, away from 0 and 1."""

import numpy as np
import pytest
from relplot import smECE
from scipy.stats import norm
from tests.parity.peer_rows import EVERY, drawn, one_problem

from calibrant.metrics import ece_smooth
from calibrant.testing import shifted_world

RESOLUTION = 1 / 1024  # relplot halves the bandwidth ten times


def by_definition(events, scores, cells=3000):
    """Find sigma with smECE_sigma = sigma by summing every reflected kernel at every point."""
    points = (np.arange(cells) + 0.5) / cells
    gap = (events - scores) / len(scores)

    def error(sigma):
        total = np.zeros(cells)
        for mirrored in (scores, -scores):
            for shift in (-2.0, 0.0, 2.0):
                total += gap @ norm.pdf(points, (mirrored + shift)[:, None], sigma)
        return np.abs(total).mean()

    low, high = 0.0, 1.0
    for _ in range(14):
        middle = (low + high) / 2
        low, high = (middle, high) if error(middle) > middle else (low, middle)
    return (low + high) / 2


@pytest.mark.parametrize("name", EVERY)
def test_the_value_solves_the_definition_written_out(name):
    events, scores = one_problem(*drawn(name, 60, 0))
    assert ece_smooth(events, scores) == pytest.approx(by_definition(events, scores), abs=1.5e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [100, 1000, 10_000])
@pytest.mark.parametrize("name", ["binary", "rare", "tied", "multiclass", "long_tailed"])
def test_values_agree_within_relplots_resolution_on_scores_inside_the_ends(name, n, dtype):
    events, scores = one_problem(*drawn(name, n, n, dtype))
    inside = (0.05 + 0.9 * scores).astype(dtype)
    found = ece_smooth(events, inside)
    assert 0.01 < found < 0.15  # beyond, relplot's kernel ends too early: see below
    assert found == pytest.approx(smECE(inside.astype(np.float64), events), abs=RESOLUTION)


@pytest.mark.parametrize("gap", [0.0, 0.03, 0.08])
def test_values_agree_on_even_scores_that_are_too_extreme(gap):
    draw = shifted_world(gap).draw(5000, 7)
    found = ece_smooth(draw.labels, draw.probs)
    assert found == pytest.approx(smECE(draw.probs, draw.labels), abs=RESOLUTION)


def test_a_row_at_exactly_one_counts_half_in_relplot_and_in_full_here():
    # 100 perfect rows at 1 and 100 rows at 0.5 with a gap of 0.1: half of 0.1 is the error.
    scores = np.r_[np.ones(100), np.full(100, 0.5)]
    events = np.r_[np.ones(100), np.ones(60), np.zeros(40)]
    assert ece_smooth(events, scores) == pytest.approx(0.05, abs=1e-5)
    # relplot's mirror image leaves out the end point: 100 * 0.1 / (50 + 100).
    assert smECE(scores, events) == pytest.approx(0.1 / 1.5, abs=RESOLUTION)


def test_relplots_kernel_ends_at_half_which_shows_in_large_errors():
    # A bandwidth of 0.2 reaches beyond 0.5; relplot's table of the kernel does not.
    events, scores = one_problem(*drawn("saturated", 300, 0))
    inside = 0.05 + 0.9 * scores
    true = by_definition(events, inside, cells=400)
    assert true > 0.15
    assert ece_smooth(events, inside) == pytest.approx(true, abs=3e-4)
    assert smECE(inside, events) - true > 2 * RESOLUTION
