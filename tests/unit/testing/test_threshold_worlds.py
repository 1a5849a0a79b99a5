"""Threshold worlds: their exact rates match large draws."""

import numpy as np
import pytest

from calibrant.errors import InputError
from calibrant.testing.threshold_laws import Atoms, Clouds, Steps, Strata
from calibrant.testing.threshold_worlds import (
    THRESHOLD_WORLDS,
    ThresholdWorld,
    constant_rate,
    crossing,
    hugging,
    sawtooth,
    straddling,
    torn,
)
from calibrant.thresholds import RATES, Cost

N = 100_000
WORLDS = list(THRESHOLD_WORLDS.values())
each_world = pytest.mark.parametrize("world", WORLDS, ids=[world.name for world in WORLDS])
FACTORIES = [constant_rate, hugging, sawtooth, crossing, straddling]


def scores_and_weights(draw, on):
    """Return the scores, and the weights or ones."""
    scores = draw.probs if on == "probs" else draw.logits
    weights = np.ones(len(scores)) if draw.weights is None else draw.weights
    return scores, weights


def measure_rate(rate, event, act, weights):
    """Return a rate of weighted rows and its standard error; None if too few meet the condition.

    One more row of either kind is assumed, so that the error of a rate of 0 or 1 is not 0.
    """
    masks = {"positive": event, "negative": ~event, "act": act, "pass": ~act}
    condition = masks.get(rate.condition, np.ones(len(act), bool))
    if condition.sum() < 200:
        return None
    event_rows, kept_weights = masks[rate.event][condition], weights[condition]
    value = np.average(event_rows, weights=kept_weights)
    gap = np.append(kept_weights * (event_rows - value), weights.max())
    return value, np.sqrt((gap**2).sum()) / kept_weights.sum()


@each_world
def test_every_rate_matches_a_large_draw(world):
    draw = world.draw(N, 5)
    for on in ("probs",) if draw.logits is None else ("probs", "logits"):
        scores, weights = scores_and_weights(draw, on)
        for top in (False, True):
            middle = 0.5 if on == "probs" else 0.0
            confidence = np.maximum(scores, 1 - scores) if on == "probs" else np.abs(scores)
            one = confidence if top else scores
            event = (scores > middle) == (draw.labels == 1) if top else draw.labels == 1
            for t in np.quantile(one, [0.0, 0.05, 0.5, 0.9, 0.97]):
                for rate in RATES.values():
                    if rate.of == ("class" if top else "top-label"):
                        continue
                    result = measure_rate(rate, event, one >= t, weights)
                    if result is not None:
                        true = world.truth(rate, float(t), on=on, top=top)
                        assert abs(result[0] - true) <= 4.5 * result[1], (rate.name, t, top)


@each_world
def test_costs_match_a_large_draw(world):
    draw, cost = world.draw(N, 6), Cost(1.0, 5.0, 0.5, 0.25)
    weights = scores_and_weights(draw, "probs")[1]
    for t in (0.2, 0.6, 0.9):
        act, event = draw.probs >= t, draw.labels == 1
        spent = np.where(act, np.where(event, 0.5, 1.0), np.where(event, 5.0, 0.25))
        assert world.truth(cost, t) == pytest.approx(np.average(spent, weights=weights), abs=0.05)


@each_world
def test_draws_have_a_shape_and_follow_their_seed(world):
    draw, again, other = world.draw(300, 3), world.draw(300, 3), world.draw(300, 4)
    assert draw.labels.shape == draw.probs.shape == (300,)
    assert set(np.unique(draw.labels)) <= {0, 1}
    assert draw.probs.min() >= 0
    assert draw.probs.max() <= 1
    assert np.array_equal(draw.labels, again.labels)
    assert np.array_equal(draw.probs, again.probs)
    assert not np.array_equal(draw.probs, other.probs)
    assert world.name in THRESHOLD_WORLDS
    assert world.description


def test_no_rows_are_refused():
    with pytest.raises(InputError, match="at least 1"):
        THRESHOLD_WORLDS["ties"].draw(0, 0)


@pytest.mark.parametrize("name", ["overlapping", "hugging", "hugging_ties", "saturated"])
def test_other_scores_for_the_same_labels_are_worth_the_same(name):
    world = THRESHOLD_WORLDS[name]
    draw = world.draw(N, 1)
    other = world.rescore(draw.labels, 2)
    assert np.array_equal(other.labels, draw.labels)
    assert not np.array_equal(other.probs, draw.probs)
    t = float(np.quantile(draw.probs, 0.8))
    reached = other.labels[other.probs >= t]
    assert reached.mean() == pytest.approx(world.truth("precision", t), abs=0.01)


@pytest.mark.parametrize("target", [0.05, 0.5, 0.85, 0.99])
@pytest.mark.parametrize("make", FACTORIES)
def test_least_favourable_worlds_are_just_below_any_target(make, target):
    world = make(target, gap=1e-5) if make is not straddling else make(target)
    thresholds = np.linspace(0.001, 0.999, 999)
    true = np.array([world.truth("precision", t) for t in thresholds])
    true = true[np.isfinite(true)]
    below = (true < target) & (true > 0.9 * target)
    assert below.mean() > 0.25


def test_precision_just_below_the_target_where_it_matters():
    assert all(constant_rate().truth("precision", t) < 0.85 for t in (0.01, 0.5, 0.99))
    teeth = [sawtooth().truth("precision", t) for t in np.linspace(0, 0.999, 997)]
    assert max(teeth) < 0.85
    early, late = (hugging().truth("precision", t) for t in (0.95, 0.5))
    assert early > 0.85 > late > 0.8499
    signs = np.sign([crossing().truth("precision", t) - 0.85 for t in np.linspace(0.5, 0.999, 997)])
    assert (np.diff(signs) != 0).sum() > 8


@pytest.mark.parametrize("with_tie", [False, True])
def test_a_tie_decides_whether_the_promise_is_kept(with_tie):
    world = straddling(kept_with_tie=with_tie)
    assert (world.truth("precision", 0.6) >= 0.85) is with_tie
    assert (world.truth("precision", np.nextafter(0.6, 1)) >= 0.85) is not with_tie


def test_no_threshold_keeps_both_targets_of_the_torn_world():
    world = torn()
    met = [
        (world.truth("precision", t) >= 0.85, world.truth("recall", t) >= 0.9)
        for t in (0.9, 0.6, 0.2)
    ]
    assert met == [(True, False), (False, True), (False, True)]


def test_ignoring_weights_overestimates_precision_in_weighted_worlds():
    for name in ("weighted", "weighted_hugging"):
        world = THRESHOLD_WORLDS[name]
        draw = world.draw(N, 0)
        assert draw.weights.min() >= 1
        act = draw.probs >= 0.8
        assert draw.labels[act].mean() > world.truth("precision", 0.8) + 0.05


def test_many_saturated_scores_are_one():
    draw = THRESHOLD_WORLDS["saturated"].draw(10_000, 0)
    assert draw.probs.dtype == np.float32
    assert (draw.probs == 1).mean() > 0.05
    assert len(np.unique(draw.logits)) == 10_000


def test_truths_of_a_world_worked_by_hand():
    world = ThresholdWorld("hand", "", Atoms((0.9, 0.6, 0.5, 0.2), (0.2, 0.3, 0.1, 0.4),
                                             (1.0, 0.5, 1.0, 0.25)))  # fmt: skip
    assert world.prevalence == pytest.approx(0.55)
    truth = {name: world.truth(name, 0.6) for name in RATES}
    assert truth == pytest.approx({
        "precision": 0.35 / 0.5, "recall": 0.35 / 0.55, "specificity": 0.3 / 0.45,
        "fpr": 0.15 / 0.45, "npv": 0.3 / 0.5, "false_discovery": 0.15 / 0.5,
        # Confidence of at least 0.6: the rows at 0.9 and 0.6, and those at 0.2, predicted negative.
        "accuracy": (0.35 + 0.3) / 0.9, "coverage": 0.5, "abstention": 0.5,
    })  # fmt: skip
    # A row at 0.5 is predicted negative.
    assert world.truth("accuracy", 0.5) == pytest.approx(0.35 + 0.3)
    assert np.isnan(world.truth("precision", 0.95))
    assert np.isnan(world.truth("npv", 0.0))


@pytest.mark.parametrize(
    "law",
    [
        Clouds(0.3, ((1.0, 1.0, 1.0),)),
        Clouds(0.3, ((1.0, 1.0, 1.0),), single=True),
        Steps((0.5, 0.5), (0.9, 0.1)),
        Atoms((0.8, 0.1), (0.5, 0.5), (0.9, 0.1)),
        Strata((0.5, 0.5), (1.0, 0.1), (Steps((1.0,), (0.3,)), Steps((1.0,), (0.7,)))),
    ],
)
@pytest.mark.parametrize("flipped", [False, True])
def test_all_rows_reach_the_lowest_threshold_and_none_one_above_all_scores(law, flipped):
    assert sum(law.shares_above(0.0, "probs", flipped=flipped)) == pytest.approx(1)
    assert sum(law.shares_above(-np.inf, "logits", flipped=flipped)) == pytest.approx(1)
    assert law.shares_above(0.0, "probs", flipped=flipped)[0] == pytest.approx(law.prevalence)
    assert law.shares_above(1.5, "probs", flipped=flipped) == pytest.approx((0, 0))


def test_labels_alone_cannot_be_scored_in_a_stratified_world():
    with pytest.raises(NotImplementedError):
        THRESHOLD_WORLDS["weighted"].rescore(np.array([0, 1]), 0)
