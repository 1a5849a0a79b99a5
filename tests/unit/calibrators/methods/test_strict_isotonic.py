"""Strict isotonic calibration: by hand, by a plain loop, and where ranks must survive."""

import json

import numpy as np
import pytest

from calibrant.calibrators import Calibrator, IsotonicCalibration, StrictIsotonic
from calibrant.calibrators.methods.strict_isotonic import END_SLOPE
from calibrant.convert import log_odds_from_logits
from calibrant.errors import InputError
from calibrant.metrics import auprc, auroc, nll
from calibrant.testing import WORLDS


def drawn(n, seed, digits=2):
    rng = np.random.default_rng(seed)
    z = np.round(2 * rng.normal(size=n), digits)
    return z, (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)


def slowly(scores, events, weights, pseudo_count):
    """Pool neighbours one after the other; return mean scores and frequencies of the pools."""
    order = np.argsort(scores)
    pools = [
        [w, w * e, w * s]
        for s, e, w in zip(scores[order], events[order], weights[order], strict=True)
    ]
    low, high = float(scores.min()), float(scores.max())
    pools = [
        [pseudo_count, pseudo_count, pseudo_count * low],
        *pools,
        [pseudo_count, 0.0, pseudo_count * high],
    ]
    # Equal scores are one pool from the start.
    merged = []
    for pool in pools:
        if merged and merged[-1][2] / merged[-1][0] == pytest.approx(pool[2] / pool[0], abs=1e-9):
            merged[-1] = [a + b for a, b in zip(merged[-1], pool, strict=True)]
        else:
            merged.append(pool)
    done = []
    for pool in merged:
        done.append(pool)
        while len(done) > 1 and done[-2][1] / done[-2][0] >= done[-1][1] / done[-1][0]:
            last = done.pop()
            done[-1] = [a + b for a, b in zip(done[-1], last, strict=True)]
    return [s / w for w, _, s in done], [e / w for w, e, _ in done]


def test_by_hand():
    # Pools: four rows at 0 with one more event, 1/5; rows 1, 0 at 2 and 4, 1/2 at their mean 3;
    # four rows at 6 with one more non-event, 4/5.
    logits = [0.0] * 4 + [2.0, 4.0] + [6.0] * 4
    calibrator = StrictIsotonic().fit(logits, [0] * 4 + [1, 0] + [1] * 4)
    assert calibrator.maps_[0]["scores"] == pytest.approx([0.0, 3.0, 6.0])
    assert calibrator.predict_proba([0.0, 3.0, 6.0]) == pytest.approx([0.2, 0.5, 0.8])
    # Half-way the log-odds are half of -log 4; beyond the end they go on by a thousandth.
    assert calibrator.predict_proba([1.5]) == pytest.approx([1 / 3])
    beyond = calibrator.predict_log_proba([[0.0, 106.0], [100.0, 0.0]])
    odds = beyond[:, 1] - beyond[:, 0]
    assert odds == pytest.approx([np.log(4) + 100 * END_SLOPE, -np.log(4) - 100 * END_SLOPE])


@pytest.mark.parametrize("pseudo_count", [0.5, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_a_plain_loop_gives_the_same_points(seed, pseudo_count):
    z, y = drawn(80, seed, digits=1)
    weights = np.random.default_rng(seed).uniform(0.1, 5.0, 80) if seed % 2 else np.ones(80)
    found = StrictIsotonic(pseudo_count=pseudo_count).fit(z, y, weights).maps_[0]
    centres, rates = slowly(z, y, weights, pseudo_count)
    assert found["scores"] == pytest.approx(np.array(centres), abs=1e-9)
    assert 1 / (1 + np.exp(-found["odds"])) == pytest.approx(np.array(rates), abs=1e-12)


@pytest.mark.parametrize("name", ["calibrated", "binary", "tied", "rare"])
def test_ranks_survive_where_plain_steps_lose_them(name):
    draw = WORLDS[name].draw(3000, 1)
    p = np.clip(draw.probs.astype(np.float64), 1e-12, 1 - 1e-12)
    logits = np.log(p) - np.log1p(-p)
    strict = StrictIsotonic().fit(logits, draw.labels).predict_log_proba(logits)
    assert len(np.unique(strict)) == len(np.unique(logits))
    assert (np.argsort(strict, kind="stable") == np.argsort(logits, kind="stable")).all()
    found = np.exp(strict)
    assert auroc(draw.labels, found) == pytest.approx(auroc(draw.labels, p), abs=1e-12)
    assert auprc(draw.labels, found) == pytest.approx(auprc(draw.labels, p), abs=1e-12)
    steps = IsotonicCalibration().fit(logits, draw.labels).predict_proba(logits)
    assert len(np.unique(steps)) < len(np.unique(logits))


def test_the_posterior_is_recovered():
    draw = WORLDS["binary"].draw(200_000, 2)
    logits = np.log(draw.probs) - np.log1p(-draw.probs)
    fresh = WORLDS["binary"].draw(50_000, 3)
    asked = np.log(fresh.probs) - np.log1p(-fresh.probs)
    found = StrictIsotonic().fit(logits, draw.labels).predict_proba(asked)
    assert np.abs(found - fresh.posterior).mean() < 0.01
    assert nll(fresh.labels, found) < nll(fresh.labels, fresh.posterior) + 0.002


def test_labels_that_contradict_the_scores_keep_the_order():
    z, y = drawn(200, 4)
    calibrator = StrictIsotonic().fit(z, 1 - y)
    asked = np.linspace(-10, 10, 300)
    assert (np.diff(calibrator.predict_proba(asked)) > 0).all()
    assert calibrator.predict_proba(asked) == pytest.approx(np.full(300, 1 - y.mean()), abs=0.05)


@pytest.mark.parametrize("at", [0.0, -1e4])
def test_one_distinct_score(at):
    calibrator = StrictIsotonic().fit([at] * 8, [1] * 2 + [0] * 6)
    assert calibrator.predict_proba([at]) == pytest.approx([0.3])
    assert (np.diff(calibrator.predict_proba([at - 1, at, at + 1])) > 0).all()


def test_extreme_logits_stay_finite():
    calibrator = StrictIsotonic().fit([-1e4] * 3 + [1e4] * 8, [0] * 3 + [1] * 8)
    # One event in 3 + 1 below, 8 in 8 + 1 above, and half-way the mean of their log-odds.
    middle = np.sqrt(8 / 3) / (1 + np.sqrt(8 / 3))
    found = calibrator.predict_proba([-1e4, 0.0, 1e4])
    assert found == pytest.approx([1 / 4, middle, 8 / 9], abs=1e-9)
    assert np.isfinite(calibrator.predict_log_proba([[0.0, 1e6], [1e6, 0.0]])).all()


def test_scores_that_are_neighbours_in_float64_keep_points_in_order(subtests):
    for seed in range(40):
        with subtests.test(f"seed {seed}"):
            rng = np.random.default_rng(seed)
            z = rng.choice(rng.normal(size=3) * 10 ** rng.uniform(-3, 3), 30)
            z = np.where(rng.random(30) < 0.5, np.nextafter(z, np.inf), z)
            y = np.arange(30) % 2
            weights = 10 ** rng.uniform(-3, 3, 30)
            points = StrictIsotonic().fit(z, y, weights).maps_[0]
            assert (np.diff(points["scores"]) > 0).all()
            assert (np.diff(points["odds"]) > 0).all()
            assert z.min() <= points["scores"][0] <= points["scores"][-1] <= z.max()


def test_a_tiny_pseudo_count_is_still_finite():
    calibrator = StrictIsotonic(pseudo_count=1e-300).fit(np.arange(10.0), [0] * 5 + [1] * 5)
    assert np.isfinite(calibrator.predict_log_proba([-1.0, 4.0, 20.0])).all()
    json.dumps(calibrator.to_dict(), allow_nan=False)


def test_weights_are_repetitions_and_order_is_nothing():
    z, y = drawn(120, 5)
    times = np.random.default_rng(5).integers(1, 4, 120)
    asked = np.linspace(-6, 6, 50)
    once = StrictIsotonic().fit(z, y, times).predict_proba(asked)
    many = StrictIsotonic().fit(np.repeat(z, times), np.repeat(y, times))
    assert many.predict_proba(asked) == pytest.approx(once, abs=1e-9)
    order = np.random.default_rng(6).permutation(120)
    again = StrictIsotonic().fit(z[order], y[order], times[order])
    assert again.predict_proba(asked) == pytest.approx(once, abs=1e-9)


def test_two_columns_and_more_classes():
    z, y = drawn(100, 7)
    columns = np.column_stack([-z, np.zeros(100)])
    found = StrictIsotonic().fit(columns, y).predict_proba(columns)
    assert found[:, 1] == pytest.approx(StrictIsotonic().fit(z, y).predict_proba(z), abs=1e-12)
    draw = WORLDS["multiclass"].draw(500, 8)
    logits = np.log(draw.probs)
    odds = log_odds_from_logits(logits)
    found = StrictIsotonic().fit(logits, draw.labels).predict_proba(logits)
    alone = np.column_stack(
        [
            StrictIsotonic().fit(odds[:, k], draw.labels == k).predict_proba(odds[:, k])
            for k in range(5)
        ]
    )
    assert found == pytest.approx(alone / alone.sum(axis=1, keepdims=True), abs=1e-12)


def test_saved_and_loaded_it_says_the_same_to_the_last_bit():
    z, y = drawn(200, 9)
    calibrator = StrictIsotonic(pseudo_count=0.25).fit(z, y)
    loaded = Calibrator.from_dict(json.loads(json.dumps(calibrator.to_dict(), allow_nan=False)))
    assert loaded.pseudo_count == 0.25
    asked = np.r_[z, np.linspace(-90, 90, 100)]
    assert (loaded.predict_log_proba(asked) == calibrator.predict_log_proba(asked)).all()


@pytest.mark.parametrize("count", [0.0, -1.0, np.nan, np.inf])
def test_other_pseudo_counts_are_refused(count):
    with pytest.raises(InputError, match="pseudo_count"):
        StrictIsotonic(pseudo_count=count).fit([0.0, 1.0], [0, 1])
