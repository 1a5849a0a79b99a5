"""Vector scaling: by hand, by search, where the truth is known, and on published logits."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.data_sets import data_file

from calibrant.calibrators import Calibrator, VectorScaling
from calibrant.errors import InputError
from calibrant.metrics import nll


def softmax(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def centre_rows(logits):
    return logits - logits.mean(axis=1, keepdims=True)


def drawn(n, seed, scale=(1.0, 1.0, 1.0), shift=(0.0, 0.0, 0.0), spread=2.0):
    """Draw logits and labels whose posterior is softmax(scale * centred logits + shift)."""
    rng = np.random.default_rng(seed)
    logits = spread * rng.normal(size=(n, len(scale)))
    posterior = softmax(np.array(scale) * centre_rows(logits) + shift)
    return logits, (posterior.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), posterior


def test_one_distinct_row_by_hand():
    # With one row u the slope of the NLL is g = p - frequency; along v_k it is g_k u_k, and the
    # penalty's is 2 (v_k - 1) / N: so v = 1 - N g u / 2 and b = -N g / 2.
    u, g, n = np.array([1.0, 0.5, -1.5]), np.array([0.01, -0.02, 0.01]), 20.0
    v, b = 1 - n * g * u / 2, -n * g / 2
    weights = n * (softmax(v * u + b) - g)
    calibrator = VectorScaling().fit(np.tile(u + 7.0, (3, 1)), [0, 1, 2], weights)
    assert calibrator.weight_ == pytest.approx(v, abs=1e-6)
    assert calibrator.intercept_ == pytest.approx(b, abs=1e-6)
    assert calibrator.predict_proba([u])[0] == pytest.approx(weights / n + g, abs=1e-6)


@pytest.mark.parametrize("strength", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(2))
def test_no_search_does_better(seed, strength):
    logits, y, _ = drawn(80, seed, (0.5, 1.0, 1.5), (0.5, 0.0, -0.5))
    x = centre_rows(logits)

    def objective(theta):
        p = softmax(theta[:3] * x + theta[3:])
        penalty = strength / 80 * (((theta[:3] - 1) ** 2).sum() + (theta[3:] ** 2).sum())
        return -np.log(p[np.arange(80), y]).mean() + penalty

    calibrator = VectorScaling(strength=strength).fit(logits, y)
    mine = objective(np.append(calibrator.weight_, calibrator.intercept_))
    for start in (np.zeros(6), np.ones(6), np.array([2.0, -1, 0, 1, 2, -3])):
        assert mine <= minimize(objective, start, method="BFGS").fun + 1e-10


def test_the_scales_and_shifts_are_recovered():
    scale, shift = (0.5, 0.8, 1.2), (0.6, 0.0, -0.6)
    logits, y, posterior = drawn(60_000, 2, scale, shift)
    calibrator = VectorScaling().fit(logits, y)
    assert calibrator.weight_ == pytest.approx(scale, abs=0.04)
    assert calibrator.intercept_ == pytest.approx(shift, abs=0.04)
    assert np.abs(calibrator.predict_proba(logits) - posterior).mean() < 0.005


def test_a_calibrated_model_is_left_alone():
    logits, y, posterior = drawn(60_000, 3)
    assert np.abs(VectorScaling().fit(logits, y).predict_proba(logits) - posterior).mean() < 0.005


def test_a_strong_penalty_leaves_the_model_as_it_is():
    logits, y, _ = drawn(100, 4, (0.5, 1.0, 2.0))
    found = VectorScaling(strength=1e9).fit(logits, y).predict_proba(logits)
    assert found == pytest.approx(softmax(logits), abs=1e-6)


def test_a_constant_added_to_a_row_is_nothing():
    logits, y, _ = drawn(120, 5, (0.5, 1.0, 1.5))
    moved = logits + 10 * np.random.default_rng(5).normal(size=(120, 1))
    usual, other = VectorScaling().fit(logits, y), VectorScaling().fit(moved, y)
    assert other.weight_ == pytest.approx(usual.weight_, abs=1e-6)
    assert other.predict_proba(logits) == pytest.approx(usual.predict_proba(logits), abs=1e-6)


def test_weights_are_repetitions_and_order_is_nothing():
    logits, y, _ = drawn(90, 6, (0.5, 1.0, 1.5))
    times = np.random.default_rng(6).integers(1, 4, 90)
    once = VectorScaling().fit(logits, y, times)
    many = VectorScaling().fit(np.repeat(logits, times, axis=0), np.repeat(y, times))
    assert many.weight_ == pytest.approx(once.weight_, abs=1e-5)
    order = np.random.default_rng(7).permutation(90)
    again = VectorScaling().fit(logits[order], y[order], times[order])
    assert again.intercept_ == pytest.approx(once.intercept_, abs=1e-5)


def test_classes_in_another_order_swap_their_numbers():
    logits, y, _ = drawn(200, 8, (0.5, 1.0, 1.5), (1.0, 0.0, -1.0))
    usual = VectorScaling().fit(logits, y)
    swapped = VectorScaling().fit(logits[:, [2, 0, 1]], np.array([1, 2, 0])[y])
    assert swapped.weight_ == pytest.approx(usual.weight_[[2, 0, 1]], abs=1e-5)
    assert swapped.intercept_ == pytest.approx(usual.intercept_[[2, 0, 1]], abs=1e-5)


def test_two_classes_in_both_shapes():
    rng = np.random.default_rng(9)
    z = 3 * rng.normal(size=150)
    y = (rng.random(150) < 1 / (1 + np.exp(-z / 2))).astype(int)
    columns = np.column_stack([4 - z, np.full(150, 4.0)])
    one, two = VectorScaling().fit(z, y), VectorScaling().fit(columns, y)
    assert two.predict_proba(columns)[:, 1] == pytest.approx(one.predict_proba(z), abs=1e-7)
    # The scales of two classes share the work: only their mean is felt.
    assert one.weight_[0] == pytest.approx(one.weight_[1], abs=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_separated_labels_tiny_classes_and_extreme_logits_stay_sound(scale):
    y = np.array([0] * 20 + [1] * 9 + [2])
    logits = scale * np.eye(3)[y]
    calibrator = VectorScaling().fit(logits, y)
    found = calibrator.predict_proba(np.r_[logits, 1e4 * np.eye(3), np.zeros((1, 3))])
    assert np.isfinite(calibrator.predict_log_proba(1e4 * np.eye(3))).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(34), abs=1e-12)
    assert nll(y, found[:30]) < 1.1


def test_labels_that_contradict_the_scores_turn_them_round_at_most_softly():
    logits, y, _ = drawn(300, 10)
    found = VectorScaling().fit(-logits, y)
    assert nll(y, found.predict_proba(-logits)) <= np.log(3)
    assert (found.weight_ < 0).all()


def test_saved_and_loaded_it_says_the_same_to_the_last_bit():
    logits, y, _ = drawn(80, 11)
    calibrator = VectorScaling(strength=0.5).fit(logits, y)
    loaded = Calibrator.from_dict(json.loads(json.dumps(calibrator.to_dict(), allow_nan=False)))
    assert loaded.strength == 0.5
    assert (loaded.predict_log_proba(logits) == calibrator.predict_log_proba(logits)).all()


@pytest.mark.parametrize("strength", [0.0, -1.0, np.inf, np.nan])
def test_other_strengths_are_refused(strength):
    with pytest.raises(InputError, match="strength"):
        VectorScaling(strength=strength).fit(np.eye(3), [0, 1, 2])


@pytest.mark.data
def test_the_published_log_loss_on_resnet110_is_reached():
    with np.load(data_file("logits_resnet110_c10", "resnet110_c10.npz")) as rows:
        calibrator = VectorScaling().fit(rows["val_logits"], rows["val_labels"])
        found = nll(rows["test_labels"], calibrator.predict_proba(rows["test_logits"]))
    # 0.206 in Kull et al. 2019.
    assert found <= 0.206 + 0.002
    assert found == pytest.approx(0.2060, abs=2e-4)
