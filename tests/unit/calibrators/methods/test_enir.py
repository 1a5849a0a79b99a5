"""ENIR: the near-isotonic path and its optimality conditions, the average by hand and slowly."""

import json
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import isotonic_regression, lsq_linear

from calibrant.calibrators import Calibrator
from calibrant.calibrators.methods.enir import NearIsotonicEnsemble, near_isotonic_path
from calibrant.calibrators.methods.isotonic import IsotonicCalibration
from calibrant.errors import InputError
from calibrant.testing import WORLDS


def logits_of(name, n, seed):
    draw = WORLDS[name].draw(n, seed)
    probs = np.clip(draw.probs.astype(np.float64), 1e-6, 1 - 1e-6)
    return (np.log(probs) - np.log1p(-probs) if probs.ndim == 1 else np.log(probs)), draw.labels


def responses(kind, n, seed):
    """Return weights and responses: labels, labels with whole weights, or arbitrary numbers."""
    rng = np.random.default_rng(seed)
    if kind == "labels":
        return np.ones(n), (rng.random(n) < 0.4).astype(float)
    if kind == "weighted labels":
        return rng.integers(1, 5, n).astype(float), (rng.random(n) < 0.4).astype(float)
    return rng.random(n) + 0.01, rng.normal(size=n)


KINDS = ["labels", "weighted labels", "numbers"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("seed", range(4))
def test_the_path_solves_the_quadratic_programme(kind, n, seed):
    weights, y = responses(kind, n, seed)
    path = near_isotonic_path(weights, weights * y)
    # The dual: u in [0, penalty] for each border, and beta = y - D'u / w.
    borders = (np.eye(n)[:-1] - np.eye(n)[1:]).T
    root = np.sqrt(weights)
    for penalty in [0.01, 0.1, 0.3, 0.7, 1.5, 9.0]:
        dual = lsq_linear(borders / root[:, None], root * y, bounds=(0, penalty), method="bvls")
        assert path.fit(penalty) == pytest.approx(y - borders @ dual.x / weights, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 40, 400])
def test_the_path_keeps_the_optimality_conditions(kind, n):
    weights, y = responses(kind, n, n)
    path = near_isotonic_path(weights, weights * y)
    breaks = path.breaks
    for penalty in [0.0, *breaks, *(0.5 * (breaks[1:] + breaks[:-1])), 100.0]:
        beta = path.fit(penalty)
        dual = np.cumsum(weights * (y - beta))
        fall = beta[:-1] - beta[1:]
        assert dual[-1] == pytest.approx(0.0, abs=1e-9)
        assert dual.min() > -1e-9
        assert dual.max() < penalty + 1e-9
        inner = dual[:-1]
        assert np.abs(inner[fall > 1e-9] - penalty).max(initial=0.0) < 1e-9
        assert np.abs(inner[fall < -1e-9]).max(initial=0.0) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_the_path_runs_from_the_data_to_isotonic_regression(kind):
    weights, y = responses(kind, 300, 5)
    path = near_isotonic_path(weights, weights * y)
    assert path.fit(0.0) == pytest.approx(y)
    isotonic = isotonic_regression(y, weights=weights).x
    assert path.fit(path.breaks[-1]) == pytest.approx(isotonic, abs=1e-12)
    assert path.fit(1e9) == pytest.approx(isotonic, abs=1e-12)


def test_blocks_only_join_and_the_rest_of_a_path_is_the_path():
    weights, y = responses("weighted labels", 200, 6)
    path = near_isotonic_path(weights, weights * y)
    starts = [set(path.starts(p).tolist()) for p in path.breaks]
    assert all(later < earlier for earlier, later in pairwise(starts))
    middle = path.breaks[len(path.breaks) // 2]
    rest = path.from_penalty(middle)
    for penalty in path.breaks[path.breaks >= middle]:
        assert rest.blocks(penalty)[3] == pytest.approx(path.blocks(penalty)[3], abs=1e-12)


def test_the_scale_of_weights_scales_the_breaks():
    weights, y = responses("weighted labels", 200, 7)
    plain = near_isotonic_path(weights, weights * y).breaks
    scaled = near_isotonic_path(0.1 * weights, 0.1 * weights * y).breaks
    assert scaled == pytest.approx(0.1 * plain)  # and as many: rounding makes no new ones


def test_two_models_by_hand():
    # Scores 1, 2 have one row, 3, 4 two rows; the responses are 1, 0, 1, 0. At a penalty of 1/2 the
    # first two meet at 1/2, with 3/4 and 1/4 after them; at 1 all meet at 1/2.
    logits, labels = [1.0, 2.0, 3.0, 3.0, 4.0, 4.0], [1, 0, 1, 1, 0, 0]
    path = near_isotonic_path(np.array([1.0, 1, 2, 2]), np.array([1.0, 0, 2, 0]))
    assert path.breaks.tolist() == [0.5, 1.0]
    three = -2 * (2 * np.log(0.5) + 4 * np.log(0.75)) + 3 * np.log(6)
    one = -2 * 6 * np.log(0.5) + np.log(6)
    share = 1 / (1 + np.exp((three - one) / 2))  # of the model with three blocks
    expected = [0.5, 0.5, 0.5 + 0.25 * share, 0.5 - 0.25 * share]
    calibrator = NearIsotonicEnsemble(pseudo_count=0).fit(logits, labels)
    assert calibrator.predict_proba([1.0, 2.0, 3.0, 4.0]) == pytest.approx(expected, abs=1e-12)
    between = 0.5 * (expected[1] + expected[2])
    assert calibrator.predict_proba([-7.0, 1.5, 2.5, 70.0]) == pytest.approx(
        [0.5, 0.5, between, expected[3]]
    )


def slow_average(scores, labels, weights, pseudo_count):
    """Average the models of all breaks, one after the other; return values at distinct scores."""
    distinct = np.unique(scores)
    mass = np.array([weights[scores == s].sum() for s in distinct])
    hits = np.array([weights[(scores == s) & (labels == 1)].sum() for s in distinct])
    hits[0] += pseudo_count
    mass[0] += pseudo_count
    mass[-1] += pseudo_count
    path = near_isotonic_path(mass, hits)
    models, bic = [], []
    for penalty in path.breaks:
        beta = path.fit(penalty)
        inside = np.clip(beta, 1e-300, 1 - 1e-16)
        likelihood = hits @ np.log(inside) + (mass - hits) @ np.log(1 - inside)
        blocks = 1 + (np.diff(beta) != 0).sum()
        models.append(beta)
        bic.append(-2 * likelihood + blocks * np.log(mass.sum()))
    share = np.exp(0.5 * (min(bic) - np.array(bic)))
    return distinct, share @ np.array(models) / share.sum()


@pytest.mark.parametrize("name", ["binary", "tied", "rare"])
@pytest.mark.parametrize("pseudo_count", [0.0, 1.0])
def test_the_average_is_that_of_a_plain_loop(name, pseudo_count):
    logits, labels = logits_of(name, 400, 8)
    distinct, expected = slow_average(logits, labels, np.ones(400), pseudo_count)
    calibrator = NearIsotonicEnsemble(pseudo_count=pseudo_count).fit(logits, labels)
    assert calibrator.predict_proba(distinct) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", ["binary", "tied", "multiclass"])
def test_a_weight_equals_a_repetition(name):
    logits, labels = logits_of(name, 250, 2)
    times = np.random.default_rng(0).integers(0, 4, 250)
    weighted = NearIsotonicEnsemble().fit(logits, labels, times).predict_proba(logits)
    other = NearIsotonicEnsemble().fit(np.repeat(logits, times, axis=0), np.repeat(labels, times))
    assert weighted == pytest.approx(other.predict_proba(logits), abs=1e-10)


@pytest.mark.parametrize("name", ["binary", "multiclass"])
def test_saved_and_loaded_it_answers_the_same_bits(name):
    logits, labels = logits_of(name, 300, 4)
    calibrator = NearIsotonicEnsemble().fit(logits, labels)
    loaded = Calibrator.from_dict(json.loads(json.dumps(calibrator.to_dict(), allow_nan=False)))
    assert isinstance(loaded, NearIsotonicEnsemble)
    assert np.array_equal(loaded.predict_log_proba(logits), calibrator.predict_log_proba(logits))


def test_rows_that_never_fall_give_isotonic_regression():
    logits, labels = np.arange(8.0), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    for pseudo_count in (0.0, 1.0):
        found, isotonic = (
            kind(pseudo_count=pseudo_count).fit(logits, labels).predict_proba(logits)
            for kind in (NearIsotonicEnsemble, IsotonicCalibration)
        )
        if pseudo_count == 0:
            assert found == pytest.approx(isotonic)
        assert ((found > 0) & (found < 1)).all() == (pseudo_count > 0)


def test_it_follows_a_dip_that_isotonic_regression_cannot():
    rng = np.random.default_rng(0)
    scores = rng.uniform(0, 4, 4000)
    truth = np.array([0.1, 0.6, 0.2, 0.9])[scores.astype(int)]
    labels = (rng.random(4000) < truth).astype(int)
    errors = [
        np.abs(kind().fit(scores, labels).predict_proba(scores) - truth).mean()
        for kind in (NearIsotonicEnsemble, IsotonicCalibration)
    ]
    assert errors[0] < 0.5 * errors[1]


def test_constant_and_separated_scores():
    constant = NearIsotonicEnsemble(pseudo_count=0).fit(np.zeros(8), np.arange(8) < 2)
    assert constant.predict_proba([-1.0, 0.0, 1.0]) == pytest.approx([0.25, 0.25, 0.25])
    extra = NearIsotonicEnsemble().fit(np.zeros(8), np.arange(8) < 2)
    assert extra.predict_proba([0.0]) == pytest.approx([0.3])
    tiny = NearIsotonicEnsemble().fit([0.0, 1.0, 2.0], [1, 0, 1], [0.1, 0.1, 0.1])
    assert np.isfinite(tiny.predict_proba([0.0, 1.0])).all()


@pytest.mark.parametrize("pseudo_count", [-1.0, np.nan, np.inf])
def test_an_impossible_pseudo_count_is_refused(pseudo_count):
    with pytest.raises(InputError, match="pseudo_count"):
        NearIsotonicEnsemble(pseudo_count=pseudo_count).fit([0.0, 1.0], [0, 1])


@pytest.mark.parametrize(
    "change", [{"scores": [1.0, 0.0]}, {"scores": [0.0]}, {"probs": [0.5, 1.5]}, {"probs": "none"}]
)
def test_a_damaged_file_is_refused(change):
    saved = NearIsotonicEnsemble().fit([0.0, 1.0], [1, 0]).to_dict()
    assert saved["params"]["maps"][0]["scores"] == [0.0, 1.0]
    saved["params"]["maps"][0].update(change)
    with pytest.raises(InputError, match="damaged"):
        Calibrator.from_dict(saved)
