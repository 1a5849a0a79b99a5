"""Structured matrix scaling: by hand, by search, where the truth is known, on real logits."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.data_sets import data_file

from calibrant.calibrators import (
    Calibrator,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
)
from calibrant.errors import InputError
from calibrant.metrics import nll
from calibrant.testing import WORLDS

TRUE_WEIGHT = np.array([[0.4, 0.2, 0.0], [0.0, 0.5, -0.2], [-0.1, 0.1, 0.3]])
TRUE_SHIFT = np.array([0.4, -0.1, -0.3])


def softmax(z):
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def centre_rows(logits):
    return logits - logits.mean(axis=1, keepdims=True)


def temperature(logits, y, weights=None):
    return TemperatureScaling(smooth=True).fit(logits, y, weights).temperature_


def features(logits, t, n):
    """Log of the cooled probabilities with 1 / (n + 1) of doubt, less its mean in each row."""
    return centre_rows(np.log(softmax(logits / t) * n / (n + 1) + 1 / (n + 1) / logits.shape[1]))


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    logits = 3.0 * rng.normal(size=(n, 3))
    posterior = softmax(centre_rows(logits) @ TRUE_WEIGHT.T + TRUE_SHIFT)
    return logits, (posterior.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), posterior


def test_one_distinct_row_by_hand():
    # Slopes cancel on a single row x: M = -N g x' / (2 s K), the entries off the diagonal
    # divided once more by K - 1, and b = -N g / (2 s K), where g = p - frequency.
    u, weights, strength = np.array([1.0, 0.5, -1.5]), np.array([6.0, 9.0, 5.0]), 2.0
    rows = np.tile(u, (3, 1)), [0, 1, 2], weights
    calibrator = StructuredMatrixScaling(strength=strength).fit(*rows)
    x = features(u[None], temperature(*rows), 20)[0]
    g = calibrator.predict_proba([u])[0] - weights / 20
    share = 20 / (2 * strength * 3)
    part = -share * np.outer(g, x) * np.where(np.eye(3) == 1, 1.0, 0.5)
    assert calibrator.weight_ - np.eye(3) == pytest.approx(part, abs=1e-6)
    assert calibrator.intercept_ == pytest.approx(-share * g, abs=1e-6)
    assert np.abs(g).max() > 1e-3


@pytest.mark.parametrize("strength", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("seed", range(2))
def test_no_search_does_better_after_the_temperature(seed, strength):
    logits, y, _ = drawn(90, seed)
    t = temperature(logits, y)
    x = features(logits, t, len(y))

    def objective(theta):
        m, b = theta[:9].reshape(3, 3), theta[9:]
        p = softmax(x @ (np.eye(3) + m).T + b)
        off = m - np.diag(np.diag(m))
        penalty = (np.diag(m) ** 2).sum() + b @ b + 2 * (off**2).sum()
        return -np.log(p[np.arange(90), y]).mean() + strength * 3 / 90 * penalty

    calibrator = StructuredMatrixScaling(strength=strength).fit(logits, y)
    mine = objective(np.append(calibrator.weight_ - np.eye(3), calibrator.intercept_))
    for start in (np.zeros(12), np.full(12, 0.5), np.random.default_rng(seed).normal(size=12)):
        assert mine <= minimize(objective, start, method="BFGS").fun + 1e-9


def test_the_map_is_recovered_as_far_as_it_is_felt():
    logits, y, posterior = drawn(60_000, 2)
    calibrator = StructuredMatrixScaling().fit(logits, y)
    flat = np.eye(3) - 1 / 3
    weight = calibrator.weight_ / temperature(logits, y)
    assert flat @ weight @ flat == pytest.approx(flat @ TRUE_WEIGHT @ flat, abs=0.03)
    assert calibrator.intercept_ == pytest.approx(TRUE_SHIFT, abs=0.04)
    assert np.abs(calibrator.predict_proba(logits) - posterior).mean() < 0.005
    scales = StructuredVectorScaling().fit(logits, y).predict_proba(logits)
    assert nll(y, calibrator.predict_proba(logits)) < nll(y, scales) - 0.005


def test_a_strong_penalty_leaves_temperature_scaling():
    logits, y, _ = drawn(100, 3)
    found = StructuredMatrixScaling(strength=1e9).fit(logits, y).predict_proba(logits)
    cooled = TemperatureScaling(smooth=True).fit(logits, y).predict_proba(logits)
    doubt = 1 / 101
    assert found == pytest.approx((1 - doubt) * cooled + doubt / 3, abs=1e-6)


def test_where_a_temperature_is_true_few_rows_lose_little():
    loss = []
    for seed in range(20):
        draw, fresh = WORLDS["multiclass"].draw(100, seed), WORLDS["multiclass"].draw(4000, 99)
        found = StructuredMatrixScaling().fit(np.log(draw.probs), draw.labels)
        log_p = found.predict_log_proba(np.log(fresh.probs))
        best = (fresh.posterior * np.log(fresh.posterior)).sum(axis=1).mean()
        loss.append(best - (fresh.posterior * log_p).sum(axis=1).mean())
    assert np.mean(loss) < 0.05


def test_weights_are_repetitions_and_order_is_nothing():
    logits, y, _ = drawn(90, 5)
    times = np.random.default_rng(5).integers(1, 4, 90)
    once = StructuredMatrixScaling().fit(logits, y, times)
    many = StructuredMatrixScaling().fit(np.repeat(logits, times, axis=0), np.repeat(y, times))
    assert many.weight_ == pytest.approx(once.weight_, abs=1e-5)
    order = np.random.default_rng(6).permutation(90)
    again = StructuredMatrixScaling().fit(logits[order] - 5.0, y[order], times[order])
    assert again.weight_ == pytest.approx(once.weight_, abs=1e-5)


def test_two_classes_in_both_shapes():
    rng = np.random.default_rng(7)
    z = 3 * rng.normal(size=150)
    y = (rng.random(150) < 1 / (1 + np.exp(-z / 2))).astype(int)
    columns = np.column_stack([4 - z, np.full(150, 4.0)])
    one = StructuredMatrixScaling().fit(z, y).predict_proba(z)
    two = StructuredMatrixScaling().fit(columns, y).predict_proba(columns)
    assert two[:, 1] == pytest.approx(one, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_separated_labels_tiny_classes_and_extreme_logits_stay_sound(scale):
    y = np.array([0] * 20 + [1] * 9 + [2])
    logits = scale * np.eye(3)[y]
    calibrator = StructuredMatrixScaling().fit(logits, y)
    found = calibrator.predict_proba(np.r_[logits, 1e4 * np.eye(3), np.zeros((1, 3))])
    assert np.isfinite(calibrator.predict_log_proba(1e4 * np.eye(3))).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(34), abs=1e-12)
    assert nll(y, found[:30]) < 1.1


def test_more_classes_than_rows_of_each():
    rng = np.random.default_rng(8)
    y = np.arange(100) % 50
    logits = rng.normal(size=(100, 50)) + 2 * np.eye(50)[y]
    calibrator = StructuredMatrixScaling().fit(logits, y)
    assert np.isfinite(calibrator.weight_).all()
    assert calibrator.predict_proba(logits).sum(axis=1) == pytest.approx(np.ones(100), abs=1e-12)


def test_labels_that_contradict_the_scores_are_survived():
    logits, y, _ = drawn(300, 9)
    found = StructuredMatrixScaling().fit(-logits, y).predict_proba(-logits)
    assert nll(y, found) <= np.log(3) + 0.01


def test_saved_and_loaded_it_says_the_same_to_the_last_bit():
    logits, y, _ = drawn(80, 10)
    calibrator = StructuredMatrixScaling(strength=0.5).fit(logits, y)
    loaded = Calibrator.from_dict(json.loads(json.dumps(calibrator.to_dict(), allow_nan=False)))
    assert loaded.strength == 0.5
    assert (loaded.predict_log_proba(logits) == calibrator.predict_log_proba(logits)).all()


@pytest.mark.parametrize("strength", [0.0, -1.0, np.inf, np.nan])
def test_other_strengths_are_refused(strength):
    with pytest.raises(InputError, match="strength"):
        StructuredMatrixScaling(strength=strength).fit(np.eye(3), [0, 1, 2])


@pytest.mark.data
def test_on_resnet110_it_reaches_matrix_scalings_log_loss():
    with np.load(data_file("logits_resnet110_c10", "resnet110_c10.npz")) as rows:
        calibrator = StructuredMatrixScaling().fit(rows["val_logits"], rows["val_labels"])
        found = nll(rows["test_labels"], calibrator.predict_proba(rows["test_logits"]))
    # Kull et al. 2019: 0.204 for MS-ODIR, 0.203 for Dir-L2.
    assert found <= 0.203 + 0.002
    assert found == pytest.approx(0.2032, abs=3e-4)
