"""Matrix scaling: by hand, by search, where the truth is known, and on published logits."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.data_sets import data_file
from tests.sentences import refuses

from calibrant.calibrators import Calibrator, MatrixScaling
from calibrant.calibrators.base.rows import as_calibration_rows
from calibrant.calibrators.methods.matrix import odir
from calibrant.errors import InputError
from calibrant.metrics import nll

TRUE_WEIGHT = np.array([[0.8, 0.3, 0.0], [0.0, 1.0, -0.4], [-0.2, 0.1, 0.6]])
TRUE_SHIFT = np.array([0.4, -0.1, -0.3])


def softmax(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def centre_rows(logits):
    return logits - logits.mean(axis=1, keepdims=True)


def drawn(n, seed, weight=TRUE_WEIGHT, shift=TRUE_SHIFT, spread=2.0):
    """Draw logits and labels whose posterior is softmax(W x + b)."""
    rng = np.random.default_rng(seed)
    logits = spread * rng.normal(size=(n, len(shift)))
    posterior = softmax(centre_rows(logits) @ weight.T + shift)
    return logits, (posterior.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), posterior


def test_the_default_strengths_by_hand():
    rows = as_calibration_rows(np.zeros((8, 4)), np.arange(8) % 4, np.full(8, 5.0))
    penalty = odir(rows, 3.0)
    assert penalty.diagonal == pytest.approx(1 / 40)
    assert penalty.off_diagonal == pytest.approx(3 * 4 * 3 / 40)
    assert penalty.intercept == pytest.approx(3 * 4 / 40)


def test_one_distinct_row_by_hand():
    # With one row u the slope of the NLL along W_kj is g_k u_j, g = p - frequency. Against the
    # penalty's: W = I - g u' / (2 strength) entry by entry, and b = -g / (2 strength).
    u, g, n = np.array([1.0, 0.5, -1.5]), np.array([0.01, -0.02, 0.01]), 20.0
    strength = np.full((3, 3), 3 * 6 / n)
    np.fill_diagonal(strength, 1 / n)
    weight, b = np.eye(3) - np.outer(g, u) / (2 * strength), -g / (2 * 3 * 3 / n)
    weights = n * (softmax(weight @ u + b) - g)
    calibrator = MatrixScaling().fit(np.tile(u - 2.0, (3, 1)), [0, 1, 2], weights)
    assert calibrator.weight_ == pytest.approx(weight, abs=1e-6)
    assert calibrator.intercept_ == pytest.approx(b, abs=1e-6)


@pytest.mark.parametrize("strength", [0.03, 3.0])
@pytest.mark.parametrize("seed", range(2))
def test_no_search_does_better(seed, strength):
    logits, y, _ = drawn(90, seed)
    x = centre_rows(logits)

    def objective(theta):
        weight, b = theta[:9].reshape(3, 3), theta[9:]
        p = softmax(x @ weight.T + b)
        off = weight - np.diag(np.diag(weight))
        penalty = ((np.diag(weight) - 1) ** 2).sum() + strength * (6 * (off**2).sum() + 3 * b @ b)
        return -np.log(p[np.arange(90), y]).mean() + penalty / 90

    calibrator = MatrixScaling(strength=strength).fit(logits, y)
    mine = objective(np.append(calibrator.weight_, calibrator.intercept_))
    for start in (np.zeros(12), np.full(12, 0.5), np.random.default_rng(seed).normal(size=12)):
        assert mine <= minimize(objective, start, method="BFGS").fun + 1e-9


def test_the_matrix_is_recovered_as_far_as_it_is_felt():
    logits, y, posterior = drawn(60_000, 2)
    calibrator = MatrixScaling(strength=0.1).fit(logits, y)
    # Rows of x sum to 0 and softmax ignores a constant, so only the doubly centred W is felt.
    flat = np.eye(3) - 1 / 3
    assert flat @ calibrator.weight_ @ flat == pytest.approx(flat @ TRUE_WEIGHT @ flat, abs=0.03)
    assert calibrator.intercept_ == pytest.approx(TRUE_SHIFT, abs=0.03)
    assert np.abs(calibrator.predict_proba(logits) - posterior).mean() < 0.005


def test_swapped_columns_are_put_right():
    # A model whose columns 0 and 1 were mixed up: no diagonal method can repair that.
    swap = np.eye(3)[[1, 0, 2]]
    logits, y, posterior = drawn(20_000, 3, swap, np.zeros(3))
    calibrator = MatrixScaling().fit(logits, y)
    assert (calibrator.predict(logits) == posterior.argmax(axis=1)).mean() > 0.98
    assert nll(y, calibrator.predict_proba(logits)) < nll(y, posterior) + 0.005


def test_a_calibrated_model_is_left_alone():
    logits, y, posterior = drawn(60_000, 4, np.eye(3), np.zeros(3))
    found = MatrixScaling().fit(logits, y).predict_proba(logits)
    assert np.abs(found - posterior).mean() < 0.005


def test_a_strong_penalty_leaves_only_the_scales():
    logits, y, _ = drawn(100, 5)
    calibrator = MatrixScaling(strength=1e9).fit(logits, y)
    assert calibrator.weight_ == pytest.approx(np.diag(np.diag(calibrator.weight_)), abs=1e-7)
    assert calibrator.intercept_ == pytest.approx(np.zeros(3), abs=1e-7)


def test_weights_are_repetitions_and_order_is_nothing():
    logits, y, _ = drawn(90, 6)
    times = np.random.default_rng(6).integers(1, 4, 90)
    once = MatrixScaling().fit(logits, y, times)
    many = MatrixScaling().fit(np.repeat(logits, times, axis=0), np.repeat(y, times))
    assert many.weight_ == pytest.approx(once.weight_, abs=1e-5)
    order = np.random.default_rng(7).permutation(90)
    again = MatrixScaling().fit(logits[order] + 3.0, y[order], times[order])
    assert again.weight_ == pytest.approx(once.weight_, abs=1e-5)


def test_classes_in_another_order_swap_rows_and_columns():
    logits, y, _ = drawn(200, 8)
    usual = MatrixScaling().fit(logits, y)
    order = np.array([2, 0, 1])
    swapped = MatrixScaling().fit(logits[:, order], np.argsort(order)[y])
    assert swapped.weight_ == pytest.approx(usual.weight_[np.ix_(order, order)], abs=1e-5)


def test_two_classes_in_both_shapes():
    rng = np.random.default_rng(9)
    z = 3 * rng.normal(size=150)
    y = (rng.random(150) < 1 / (1 + np.exp(-z / 2))).astype(int)
    columns = np.column_stack([4 - z, np.full(150, 4.0)])
    one, two = MatrixScaling().fit(z, y), MatrixScaling().fit(columns, y)
    assert two.predict_proba(columns)[:, 1] == pytest.approx(one.predict_proba(z), abs=1e-7)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_separated_labels_tiny_classes_and_extreme_logits_stay_sound(scale):
    y = np.array([0] * 20 + [1] * 9 + [2])
    logits = scale * np.eye(3)[y]
    calibrator = MatrixScaling().fit(logits, y)
    found = calibrator.predict_proba(np.r_[logits, 1e4 * np.eye(3), np.zeros((1, 3))])
    assert np.isfinite(calibrator.predict_log_proba(1e4 * np.eye(3))).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(34), abs=1e-12)
    assert nll(y, found[:30]) < 1.1


def test_more_classes_than_rows_of_each():
    rng = np.random.default_rng(10)
    y = np.arange(100) % 50
    logits = rng.normal(size=(100, 50)) + 2 * np.eye(50)[y]
    calibrator = MatrixScaling().fit(logits, y)
    assert np.isfinite(calibrator.weight_).all()
    assert calibrator.predict_proba(logits).sum(axis=1) == pytest.approx(np.ones(100), abs=1e-12)


def test_saved_and_loaded_it_says_the_same_to_the_last_bit():
    logits, y, _ = drawn(80, 11)
    calibrator = MatrixScaling(strength=0.5).fit(logits, y)
    loaded = Calibrator.from_dict(json.loads(json.dumps(calibrator.to_dict(), allow_nan=False)))
    assert loaded.strength == 0.5
    assert (loaded.predict_log_proba(logits) == calibrator.predict_log_proba(logits)).all()


def test_a_matrix_of_another_size_is_refused_on_loading():
    logits, y, _ = drawn(80, 12)
    saved = MatrixScaling().fit(logits, y).to_dict()
    saved["params"]["weight"] = [[1.0, 0.0], [0.0, 1.0]]
    with refuses(InputError, "not fit 3", "classes"):
        Calibrator.from_dict(saved)


@pytest.mark.parametrize("strength", [0.0, -1.0, np.inf, np.nan])
def test_other_strengths_are_refused(strength):
    with pytest.raises(InputError, match="strength"):
        MatrixScaling(strength=strength).fit(np.eye(3), [0, 1, 2])


@pytest.mark.data
def test_the_published_log_loss_on_resnet110_is_reached():
    with np.load(data_file("logits_resnet110_c10", "resnet110_c10.npz")) as rows:
        calibrator = MatrixScaling().fit(rows["val_logits"], rows["val_labels"])
        found = nll(rows["test_labels"], calibrator.predict_proba(rows["test_logits"]))
    # 0.204 for MS-ODIR in Kull et al. 2019.
    assert found <= 0.204 + 0.002
    assert found == pytest.approx(0.2042, abs=2e-4)
