import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.errors import InputError
from calibrant.metrics import auprc, aurc, auroc
from calibrant.metrics.ranking import auprc_influence, aurc_influence, auroc_influence
from calibrant.metrics.tally import Tally, tally_rows
from calibrant.testing import WORLDS

ROWS = st.lists(
    st.tuples(st.sampled_from([0.1, 0.2, 0.5, 0.7, 0.9]), st.booleans()), min_size=2, max_size=25
)


def test_auroc_counts_pairs_with_ties_as_half():
    # Pairs (event, non-event): .4>.1, .4=.4, .8>.1, .8>.4
    assert auroc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8]) == pytest.approx(3.5 / 4)


def test_auprc_takes_the_precision_at_each_event():
    assert auprc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8]) == pytest.approx((1 + 2 / 3) / 2)


def test_aurc_is_the_mean_error_of_the_surest():
    # Confidences .9 (right), .8 (wrong), .7 (right): 0, 1/2, 1/3.
    assert aurc([1, 0, 1], [0.9, 0.8, 0.7]) == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)


def test_aurc_of_ties_is_the_mean_over_all_orders():
    # One right and one wrong row tie: either order gives (0 + 1/2)/2 or (1 + 1/2)/2.
    assert aurc([1, 0], [0.7, 0.7]) == pytest.approx(0.5)
    rng = np.random.default_rng(0)
    right = rng.random(30) < 0.7
    tie_broken = [
        np.mean(np.cumsum(~rng.permutation(right)) / np.arange(1, 31)) for _ in range(20_000)
    ]
    assert aurc(right.astype(int), np.full(30, 0.8)) == pytest.approx(np.mean(tie_broken), abs=4e-3)


@given(ROWS)
def test_ranking_sees_only_the_order_of_the_scores(rows):
    scores, events = (np.array(column) for column in zip(*rows, strict=True))
    if 0 < events.sum() < len(events):
        assert auroc(events, scores) == pytest.approx(auroc(events, scores**3))
        assert auprc(events, scores) == pytest.approx(auprc(events, scores**3))
        assert auroc(events, scores) == pytest.approx(1 - auroc(~events, scores))


def test_perfect_and_reversed_rankings_are_the_ends():
    assert auroc([0, 0, 1], [0.1, 0.2, 0.9]) == 1.0
    assert auroc([1, 1, 0], [0.1, 0.2, 0.9]) == 0.0
    assert auprc([0, 0, 1], [0.1, 0.2, 0.9]) == 1.0


def test_classes_without_rows_are_left_out_of_the_mean():
    probs = np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.3, 0.6, 0.1]])
    labels = [0, 1, 0, 1]
    assert auroc(labels, probs) == 1.0


def test_one_class_alone_cannot_be_ranked():
    with pytest.raises(InputError, match="only class 1"):
        auroc([1, 1], [0.2, 0.7])


@pytest.mark.parametrize("figure", [auroc_influence, auprc_influence, aurc_influence])
def test_the_influence_is_the_derivative_with_respect_to_a_rows_weight(figure):
    draw = WORLDS["tied"].draw(400, 0)
    tally = tally_rows(draw.probs, draw.labels == 1)
    _, influence = figure(tally)
    for place, column in ((2, 0), (5, 1), (9, 1), (len(tally.score) - 1, 0)):
        step = np.zeros_like(tally.weight)
        step[place, column] = 1e-4
        up, down = (
            figure(Tally(tally.score, tally.count, tally.weight + sign * step, tally.square))[0]
            for sign in (1, -1)
        )
        slope = (up - down) / 2e-4 * tally.total
        # The weight that is added also changes the scale to a mean of 1, by 1/400.
        assert slope == pytest.approx(influence[place, column], rel=5e-3, abs=1e-6)
