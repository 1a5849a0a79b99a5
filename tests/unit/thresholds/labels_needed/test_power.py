"""How many labels would be needed."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom
from tests.sentences import assert_mentions

from calibrant.thresholds import Cost, coverage, fpr, npv, precision, recall
from calibrant.thresholds.labels_needed.power import (
    MOST_ROWS,
    estimate_labels_needed,
    round_up,
    simulate_success_rate,
)
from calibrant.thresholds.labels_needed.rank_curves import RankCurves
from calibrant.thresholds.proof.certify import certify_positions
from calibrant.thresholds.proof.ranked import RankedRows, rank_rows


def falling(u):
    """A share of positives along the ranks that falls from 0.96 to 0.02."""
    return 0.02 + 0.94 * expit(9 * (0.2 - u)) / expit(9 * 0.2)


def with_a_dip(u):
    """The very first ranks are worse than those that follow."""
    return np.where(u < 0.02, 0.6, np.where(u < 0.25, 0.96, 0.1))


def rare(u):
    """One row in a hundred is positive, and nearly all of those lead."""
    return 0.97 * expit(900 * (0.008 - u)) + 0.002


def level(u):
    return np.full(np.shape(u), 0.6)


def draw(share, n, rng):
    place = np.sort(rng.random(n))
    return RankedRows(1 - place, rng.random(n) < share(place))


def truth(share, versions=200):
    edges = np.unique(np.concatenate([[0], np.geomspace(1e-5, 1, 600), np.linspace(0, 1, 400)]))
    rates = share((edges[1:] + edges[:-1]) / 2)[None, :, None].repeat(versions, axis=0)
    kept = np.zeros(len(edges) - 1, dtype=bool)
    return RankCurves(edges, np.diff(edges)[:, None], rates, np.ones(1), None, kept)


def unproved(share, n, targets, rng, delta=0.05):
    """Draw samples until one does not prove the targets."""
    while True:
        rows = draw(share, n, rng)
        masks = [certify_positions(rows, target, delta / len(targets)) for target in targets]
        if not np.logical_and.reduce(masks).any():
            return rows


def test_recall_by_hand():
    # 0.9 ** 29 = 0.047; one row in five is positive.
    rows = RankedRows(np.arange(1000.0, 0, -1), np.arange(1000) < 200)
    needed = estimate_labels_needed(rows, [recall >= 0.9], 0.05)
    assert needed.positives == 29
    share = 200.5 / 1001
    assert binom.sf(28, needed.rows, share) >= 0.8 > binom.sf(28, needed.rows - 1, share)
    # 0.9 ** 44 = 0.0097
    assert estimate_labels_needed(rows, [recall >= 0.9], 0.01).positives == 44
    # The coverage counts all rows: 0.5 ** 5 = 0.03.
    assert estimate_labels_needed(rows, [coverage >= 0.5], 0.05).rows == 5


@pytest.mark.parametrize(
    ("share", "n", "targets"),
    [
        (falling, 200, (precision >= 0.85,)),
        (falling, 800, (precision >= 0.88,)),
        (with_a_dip, 300, (precision >= 0.85,)),
        (rare, 1500, (precision >= 0.8,)),
        (falling, 300, (npv >= 0.95,)),
        (falling, 300, (precision >= 0.7, recall >= 0.5)),
        (falling, 60, (recall >= 0.7, fpr <= 0.2)),
    ],
)
def test_the_power_at_the_number_named_is_near_what_was_asked_for(share, n, targets):
    rng = np.random.default_rng(0)
    known = truth(share)
    reached = []
    for _ in range(12):
        needed = estimate_labels_needed(unproved(share, n, targets, rng), targets, 0.05)
        if needed.rows is not None:
            assert needed.rows > n
            reached.append(simulate_success_rate(known, needed.rows, targets, 0.05, rng))
    assert len(reached) >= 8
    assert 0.6 <= np.mean(reached) <= 1.0
    assert np.mean(np.array(reached) < 0.3) <= 0.25


def test_no_number_where_no_estimate_meets_the_target():
    rows = RankedRows(np.arange(100.0, 0, -1), np.arange(100) % 2 == 1)
    needed = estimate_labels_needed(rows, [precision >= 0.9], 0.05)
    assert (needed.rows, needed.positives) == (None, None)
    assert_mentions(needed.why, "no threshold's estimates", "meet precision>=0.9")


def test_luck_at_the_top_is_not_taken_for_precision():
    rng = np.random.default_rng(1)
    lucky = [draw(level, 1000, rng) for _ in range(40)]
    lucky = [rows for rows in lucky if rows.event[:2].all()]  # estimates of 1 at the first ranks
    assert len(lucky) > 5
    named = [estimate_labels_needed(rows, [precision >= 0.9], 0.05).rows for rows in lucky]
    assert np.mean([rows is None for rows in named]) >= 0.5
    assert all(rows is None or rows >= 20_000 for rows in named)  # not twenty times two rows
    why = estimate_labels_needed(lucky[named.index(None)], [precision >= 0.9], 0.05).why
    assert "by chance" in why


def test_targets_that_no_curve_meets_together():
    rows = draw(falling, 2000, np.random.default_rng(2))
    for target in (precision >= 0.8, recall >= 0.95):
        assert estimate_labels_needed(rows, [target], 0.05).rows is not None
    assert estimate_labels_needed(rows, [precision >= 0.8, recall >= 0.95], 0.05).rows is None


def test_positives_come_as_often_as_they_came():
    """Of a class of 8 rows in 1,923: curves alone would let a fair share of all rows be of it."""
    draw = np.random.default_rng(0)
    positive = np.arange(1923) < 8
    scores = np.where(positive, draw.normal(3.2, 0.6, 1923), draw.normal(0, 1, 1923))
    needed = estimate_labels_needed(rank_rows(scores, positive), [precision >= 0.8], 0.05)
    assert needed.rows is not None
    assert needed.positives / needed.rows == pytest.approx(8 / 1923, rel=0.1)


def test_more_is_needed_for_more():
    rows = draw(falling, 500, np.random.default_rng(3))
    easy = estimate_labels_needed(rows, [precision >= 0.86], 0.05)
    assert estimate_labels_needed(rows, [precision >= 0.9], 0.05).rows > easy.rows
    assert estimate_labels_needed(rows, [precision >= 0.86], 0.001).rows > easy.rows
    assert estimate_labels_needed(rows, [precision >= 0.86], 0.05, power=0.95).rows > easy.rows
    assert estimate_labels_needed(rows, [precision >= 0.86, recall >= 0.15], 0.05).rows > easy.rows


def test_only_the_order_of_the_scores_matters_and_the_seed_fixes_the_rest():
    rows = draw(falling, 500, np.random.default_rng(4))
    first = estimate_labels_needed(rows, [precision >= 0.88], 0.05)
    assert estimate_labels_needed(rows, [precision >= 0.88], 0.05) == first
    other = rank_rows(np.exp(3 * rows.score), rows.event)
    assert estimate_labels_needed(other, [precision >= 0.88], 0.05) == first
    assert first.positives == pytest.approx(first.rows * rows.positives / rows.n, rel=0.15)


def test_weights_need_more_rows():
    rng = np.random.default_rng(5)
    rows = draw(falling, 500, rng)
    plain = estimate_labels_needed(rows, [precision >= 0.85], 0.05)
    weights = rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], 500)
    heavy = rank_rows(rows.score, rows.event, weights)
    weighted = estimate_labels_needed(heavy, [precision >= 0.85], 0.05)
    assert weighted.rows > plain.rows
    looser = rank_rows(rows.score, rows.event, weights, largest_weight=50.0)
    assert estimate_labels_needed(looser, [precision >= 0.85], 0.05).rows > weighted.rows
    assert estimate_labels_needed(heavy, [recall >= 0.9], 0.05).rows > 29


def test_a_cost_at_thresholds_fixed_beforehand():
    rows = draw(falling, 400, np.random.default_rng(6))
    cost = Cost(false_positive=1, false_negative=4)
    positions = np.arange(0, 400, 40)
    needed = estimate_labels_needed(rows, [cost <= 0.45], 0.05, positions=positions)
    tighter = estimate_labels_needed(rows, [cost <= 0.42], 0.05, positions=positions)
    assert 400 < needed.rows < tighter.rows
    none = estimate_labels_needed(rows, [cost <= 0.42], 0.05, positions=np.array([0, 399]))
    assert none.rows is None


def test_beyond_the_largest_number_there_is_none(monkeypatch):
    rows = draw(falling, 500, np.random.default_rng(3))
    assert estimate_labels_needed(rows, [precision >= 0.86], 0.05).rows < MOST_ROWS
    monkeypatch.setattr("calibrant.thresholds.labels_needed.power.MOST_ROWS", 700)
    needed = estimate_labels_needed(rows, [precision >= 0.9], 0.05)
    assert needed.rows is None
    assert needed.why == "more than 700 labelled rows would be needed"


@pytest.mark.parametrize("n", [2, 3, 7, 20])
def test_few_rows(n):
    rows = RankedRows(np.arange(float(n), 0, -1), np.arange(n) < (n + 1) // 2)
    for target in (precision >= 0.85, npv >= 0.8, recall >= 0.9, fpr <= 0.2):
        needed = estimate_labels_needed(rows, [target], 0.05)
        assert needed.rows is None or needed.rows > n
    one_tie = RankedRows(np.ones(n), np.arange(n) > 0)
    assert estimate_labels_needed(one_tie, [precision >= 0.3], 0.05).why


def test_example_of_round_up():
    assert (round_up(425304), round_up(57.2)) == (430000, 58)
