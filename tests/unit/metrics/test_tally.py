import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.metrics.binning import mass_edges, width_edges
from calibrant.metrics.tally import tally_rows, tally_with_index
from calibrant.testing import WORLDS

ROWS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]), st.booleans()), min_size=1, max_size=40
)


@given(ROWS)
def test_a_tally_counts_every_row_once(rows):
    scores, events = (np.array(column) for column in zip(*rows, strict=True))
    tally = tally_rows(scores, events)
    assert tally.n == len(rows)
    assert tally.score.tolist() == sorted(set(scores.tolist()))
    for score, (missed, came) in zip(tally.score, tally.count, strict=True):
        assert came == events[scores == score].sum()
        assert missed == (~events[scores == score]).sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_quick_sort_of_pairs_equals_the_plain_one(dtype):
    draw = WORLDS["saturated"].draw(3000, 0)
    scores = np.r_[draw.probs, -0.0].astype(dtype)
    events = np.r_[draw.labels == 1, True]
    quick, (plain, place) = tally_rows(scores, events), tally_with_index(scores, events)
    assert quick.score.tolist() == plain.score.tolist()
    assert quick.count.tolist() == plain.count.tolist()
    assert plain.score[place].tolist() == scores.tolist()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("world", ["binary", "tied", "saturated"])
def test_compressing_keeps_the_sums_over_bins(world, weighted):
    draw = WORLDS[world].draw(5000, 0)
    weights = np.random.default_rng(0).uniform(0.1, 7, 5000) if weighted else None
    tally = tally_rows(draw.probs, draw.labels == 1, weights)
    for edges in (width_edges(15), mass_edges(tally.score, tally.mass, 15)):
        cells = tally.compress(edges, 100)
        assert len(cells.score) <= 100 + len(edges)
        for part in ("mass", "hits", "residual", "rows", "spread"):
            whole = tally.per_bin(edges, getattr(tally, part))
            assert cells.per_bin(edges, getattr(cells, part)) == pytest.approx(whole), part


def test_redrawing_keeps_scores_and_rows():
    tally = tally_rows(np.array([0.2, 0.2, 0.7]), np.array([True, False, True]))
    redrawn = tally.redraw(np.array([0.0, 1.0]))
    assert redrawn.count.tolist() == [[2.0, 0.0], [0.0, 1.0]]


def test_where_the_event_decides_the_weight_a_redrawn_row_takes_its_weight():
    scores, events = np.array([0.2, 0.2, 0.6, 0.6]), np.array([True, False, True, False])
    weights = np.where(events, 1.0, 10.0)
    tally = tally_rows(scores, events, weights)
    assert tally.by_event == (10.0, 1.0)
    # By hand: 0.2 / 1 against 0.8 / 10, and 0.6 / 1 against 0.4 / 10.
    np.testing.assert_allclose(tally.chance, [0.2 / 0.28, 0.6 / 0.64])
    redrawn = tally.redraw(np.array([2.0, 0.0]))
    assert redrawn.weight.tolist() == [[0.0, 2.0], [20.0, 0.0]]
    assert redrawn.square.tolist() == [[0.0, 2.0], [200.0, 0.0]]


@pytest.mark.parametrize("weights", [None, np.full(4, 3.0), np.array([1.0, 2.0, 3.0, 4.0])])
def test_other_weights_leave_the_score_as_the_chance(weights):
    events = np.array([True, False, True, False])
    tally = tally_rows(np.array([0.2, 0.2, 0.6, 0.6]), events, weights)
    assert tally.by_event is None
    assert tally.chance is tally.score
    assert tally.leverage is tally.spread
