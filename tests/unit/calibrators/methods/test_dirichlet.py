"""Dirichlet calibration: by hand, by search, where the truth is known, and on published logits."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln
from tests.data_sets import data_file

from calibrant.calibrators import (
    BetaCalibration,
    Calibrator,
    DirichletCalibration,
    MatrixScaling,
)
from calibrant.metrics import nll

ALPHA = np.array([[4.0, 1.5, 1.0], [1.0, 3.0, 1.5], [1.2, 1.0, 2.5]])
PRIOR = np.array([0.5, 0.3, 0.2])


def softmax(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def of_dirichlets(n, seed):
    """Draw predictions that follow one Dirichlet distribution for each class, and the posterior."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=PRIOR)
    raw = rng.gamma(ALPHA[y])
    log_p = np.log(raw) - np.log(raw.sum(axis=1, keepdims=True))
    weight, shift = ALPHA - 1, np.log(PRIOR) + gammaln(ALPHA.sum(1)) - gammaln(ALPHA).sum(1)
    return log_p, y, softmax(log_p @ weight.T + shift)


def test_one_distinct_row_by_hand():
    # All logits are 0, so every log-probability is u = -log 3. As for a matrix on one row:
    # W = I - g u' / (2 strength) entry by entry, b = -g / (2 strength), g = p - frequency.
    u, g, n = np.full(3, -np.log(3)), np.array([0.02, -0.03, 0.01]), 60.0
    strength = np.full((3, 3), 3 * 6 / n)
    np.fill_diagonal(strength, 1 / n)
    weight, b = np.eye(3) - np.outer(g, u) / (2 * strength), -g / (2 * 3 * 3 / n)
    weights = n * (softmax(weight @ u + b) - g)
    calibrator = DirichletCalibration().fit(np.zeros((3, 3)), [0, 1, 2], weights)
    assert calibrator.weight_ == pytest.approx(weight, abs=1e-6)
    assert calibrator.intercept_ == pytest.approx(b, abs=1e-6)
    # On another row W meets that row's log-probabilities.
    log_p = np.log([0.2, 0.5, 0.3])
    expected = softmax(weight @ log_p + b)
    assert calibrator.predict_proba([log_p])[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("strength", [0.03, 3.0])
@pytest.mark.parametrize("seed", range(2))
def test_no_search_does_better(seed, strength):
    log_p, y, _ = of_dirichlets(90, seed)

    def objective(theta):
        weight, b = theta[:9].reshape(3, 3), theta[9:]
        p = softmax(log_p @ weight.T + b)
        off = weight - np.diag(np.diag(weight))
        penalty = ((np.diag(weight) - 1) ** 2).sum() + strength * (6 * (off**2).sum() + 3 * b @ b)
        return -np.log(p[np.arange(90), y]).mean() + penalty / 90

    calibrator = DirichletCalibration(strength=strength).fit(log_p, y)
    mine = objective(np.append(calibrator.weight_, calibrator.intercept_))
    for start in (np.zeros(12), np.full(12, 0.5), np.random.default_rng(seed).normal(size=12)):
        assert mine <= minimize(objective, start, method="BFGS").fun + 1e-9


def test_the_ratio_of_dirichlet_densities_is_recovered():
    log_p, y, _ = of_dirichlets(40_000, 2)
    calibrator = DirichletCalibration(strength=1e-3).fit(log_p, y)
    fresh, labels, posterior = of_dirichlets(20_000, 3)
    found = calibrator.predict_proba(fresh)
    assert np.abs(found - posterior).mean() < 0.005
    assert nll(labels, found) < nll(labels, posterior) + 0.001
    # Softmax ignores a constant, so each column of W is felt as its differences.
    flat = np.eye(3) - 1 / 3
    assert flat @ calibrator.weight_ == pytest.approx(flat @ ALPHA, abs=0.12)
    # Mixing without the normaliser of the row cannot say the same.
    mixed = MatrixScaling(strength=1e-3).fit(log_p, y).predict_proba(fresh)
    assert nll(labels, mixed) > nll(labels, found) + 0.001


def test_with_two_classes_and_no_penalty_to_speak_of_it_is_beta_calibration():
    rng = np.random.default_rng(4)
    y = (rng.random(3000) < 0.4).astype(int)
    p = np.where(y == 1, rng.beta(3.0, 1.5, 3000), rng.beta(1.2, 4.0, 3000))
    z = np.log(p) - np.log1p(-p)
    curve = BetaCalibration(shrink=None).fit(z, y).predict_proba(z)
    # The diagonal keeps its 1/N: not felt with so many rows.
    found = DirichletCalibration(strength=1e-7).fit(z, y).predict_proba(z)
    assert found == pytest.approx(curve, abs=5e-3)


def test_a_constant_added_to_a_row_is_nothing():
    log_p, y, _ = of_dirichlets(150, 5)
    moved = log_p + 10 * np.random.default_rng(5).normal(size=(150, 1))
    usual, other = DirichletCalibration().fit(log_p, y), DirichletCalibration().fit(moved, y)
    assert other.weight_ == pytest.approx(usual.weight_, abs=1e-5)
    assert other.predict_proba(log_p) == pytest.approx(usual.predict_proba(log_p), abs=1e-5)


def test_weights_are_repetitions_and_order_is_nothing():
    log_p, y, _ = of_dirichlets(90, 6)
    times = np.random.default_rng(6).integers(1, 4, 90)
    once = DirichletCalibration().fit(log_p, y, times)
    many = DirichletCalibration().fit(np.repeat(log_p, times, axis=0), np.repeat(y, times))
    assert many.weight_ == pytest.approx(once.weight_, abs=1e-5)
    order = np.random.default_rng(7).permutation(90)
    again = DirichletCalibration().fit(log_p[order], y[order], times[order])
    assert again.weight_ == pytest.approx(once.weight_, abs=1e-5)


def test_two_classes_in_both_shapes():
    rng = np.random.default_rng(8)
    z = 3 * rng.normal(size=150)
    y = (rng.random(150) < 1 / (1 + np.exp(-z / 2))).astype(int)
    columns = np.column_stack([4 - z, np.full(150, 4.0)])
    one, two = DirichletCalibration().fit(z, y), DirichletCalibration().fit(columns, y)
    assert two.predict_proba(columns)[:, 1] == pytest.approx(one.predict_proba(z), abs=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_separated_labels_tiny_classes_and_extreme_logits_stay_sound(scale):
    y = np.array([0] * 20 + [1] * 9 + [2])
    logits = scale * np.eye(3)[y]
    calibrator = DirichletCalibration().fit(logits, y)
    found = calibrator.predict_proba(np.r_[logits, 1e4 * np.eye(3), np.zeros((1, 3))])
    assert np.isfinite(calibrator.predict_log_proba(1e4 * np.eye(3))).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(34), abs=1e-12)
    assert nll(y, found[:30]) < 1.1


def test_saved_and_loaded_it_says_the_same_to_the_last_bit():
    log_p, y, _ = of_dirichlets(80, 9)
    calibrator = DirichletCalibration(strength=0.5).fit(log_p, y)
    loaded = Calibrator.from_dict(json.loads(json.dumps(calibrator.to_dict(), allow_nan=False)))
    assert loaded.strength == 0.5
    assert (loaded.predict_log_proba(log_p) == calibrator.predict_log_proba(log_p)).all()


@pytest.mark.data
def test_the_published_log_loss_on_resnet110_is_reached():
    with np.load(data_file("logits_resnet110_c10", "resnet110_c10.npz")) as rows:
        calibrator = DirichletCalibration().fit(rows["val_logits"], rows["val_labels"])
        found = nll(rows["test_labels"], calibrator.predict_proba(rows["test_logits"]))
    # Kull et al. 2019: 0.205 for Dir-ODIR, 0.203 for Dir-L2, whose strength was cross-validated.
    assert found <= 0.205 + 0.002
    assert found <= 0.203 + 0.002
    assert found == pytest.approx(0.2044, abs=2e-4)
