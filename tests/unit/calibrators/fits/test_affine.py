"""The penalised softmax fit: its slope, its one optimum, and its limits."""

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize

from calibrant.calibrators.base.rows import as_calibration_rows
from calibrant.calibrators.fits.affine import Affine, Penalty, _Loss, fit_affine

DIAGONAL = Penalty(diagonal=0.003, off_diagonal=np.inf, intercept=0.002)
FULL = Penalty(diagonal=0.003, off_diagonal=0.01, intercept=0.002)
PENALTIES = pytest.mark.parametrize("penalty", [DIAGONAL, FULL], ids=["diagonal", "full"])


def drawn(n, k, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    z = rng.normal(size=(n, k))
    z[np.arange(n), y] += 1.5
    return scale * (z - z.mean(axis=1, keepdims=True)), y


def objective(x, rows, penalty, weight, intercept):
    """Penalised NLL, row by row as the formula says."""
    total = 0.0
    for x_i, y_i, m_i in zip(x, rows.labels, rows.mass, strict=True):
        z = weight * x_i + intercept if weight.ndim == 1 else weight @ x_i + intercept
        total += m_i * (np.log(np.exp(z - z.max()).sum()) + z.max() - z[y_i])
    diagonal = weight if weight.ndim == 1 else np.diag(weight)
    total += (
        penalty.diagonal * ((diagonal - 1) ** 2).sum() + penalty.intercept * (intercept**2).sum()
    )
    if weight.ndim == 2:
        total += penalty.off_diagonal * ((weight - np.diag(diagonal)) ** 2).sum()
    return float(total)


def quick_objective(theta, x, rows, penalty, full):
    """Return the same in matrices, with its slope, for searches."""
    k = rows.k
    weight = theta[:-k].reshape(k, k) if full else np.diag(theta[:-k])
    z = x @ weight.T + theta[-k:]
    z -= z.max(axis=1, keepdims=True)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    each = z[np.arange(rows.n), rows.labels] - np.log(np.exp(z).sum(axis=1))
    strength = np.full((k, k), penalty.off_diagonal if full else 0.0)
    np.fill_diagonal(strength, penalty.diagonal)
    away = weight - np.eye(k)
    value = (
        -rows.mass @ each + (strength * away**2).sum() + penalty.intercept * theta[-k:] @ theta[-k:]
    )
    slack = rows.mass[:, None] * (p - np.eye(k)[rows.labels])
    inner = slack.T @ x + 2 * strength * away
    inner = inner.ravel() if full else np.diag(inner)
    return value, np.append(inner, slack.sum(axis=0) + 2 * penalty.intercept * theta[-k:])


def searched(x, rows, penalty):
    """Return the lowest objective that L-BFGS finds from several starts, with restarts."""
    full = np.isfinite(penalty.off_diagonal)
    size = rows.k * rows.k if full else rows.k
    rng = np.random.default_rng(0)
    found = []
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 40}
    for start in (np.zeros(size + rows.k), rng.normal(size=size + rows.k)):
        for _ in range(2):
            args = (x, rows, penalty, full)
            out = minimize(
                quick_objective, start, args, jac=True, method="L-BFGS-B", options=options
            )
            start = out.x
        found.append(out.fun)
    return min(found)


def test_a_map_is_applied_by_hand():
    x = np.array([[1.0, 2.0], [0.0, -1.0]])
    scaled = Affine(np.array([2.0, 3.0]), np.array([0.5, -0.5]))
    assert scaled(x).tolist() == [[2.5, 5.5], [0.5, -3.5]]
    mixed = Affine(np.array([[1.0, 1.0], [0.0, 2.0]]), np.array([0.0, 1.0]))
    assert mixed(x).tolist() == [[3.0, 5.0], [-1.0, -1.0]]


@pytest.mark.parametrize("full", [True, False])
def test_the_slope_is_what_differences_say(full):
    x, y = drawn(30, 4, 0)
    mass = np.random.default_rng(0).dirichlet(np.ones(30))
    loss = _Loss(x, y, mass, full)
    for seed in range(3):
        theta = np.random.default_rng(seed).normal(size=20 if full else 8)
        gap = check_grad(lambda t: loss(t)[0], lambda t: loss(t)[1], theta)
        assert gap < 1e-6


@PENALTIES
@pytest.mark.parametrize("seed", range(3))
def test_no_search_from_other_starts_does_better(penalty, seed):
    x, y = drawn(90, 3, seed, scale=3.0)
    weights = np.random.default_rng(seed).uniform(0.1, 5.0, 90) if seed else None
    rows = as_calibration_rows(x, y, weights)
    found = fit_affine(x, rows, penalty)
    mine = objective(x, rows, penalty, found.weight, found.intercept)
    assert mine <= searched(x, rows, penalty) * (1 + 1e-9)


@PENALTIES
def test_every_small_step_away_is_worse(penalty):
    x, y = drawn(60, 3, 4)
    rows = as_calibration_rows(x, y)
    found = fit_affine(x, rows, penalty)
    mine = objective(x, rows, penalty, found.weight, found.intercept)
    rng = np.random.default_rng(4)
    for size in (1.0, 1e-2, 1e-3):
        for _ in range(20):
            weight = found.weight + size * rng.normal(size=found.weight.shape)
            intercept = found.intercept + size * rng.normal(size=3)
            assert objective(x, rows, penalty, weight, intercept) > mine


def test_the_penalty_of_a_shift_by_hand():
    # All scores are 0, so softmax(b) - frequency + 2 lambda b = 0. With b = (log 2, 0, -log 2)
    # and lambda = 1/100 the frequencies are 4/7, 2/7, 1/7 plus b/50.
    b = np.array([np.log(2), 0.0, -np.log(2)])
    weights = np.array([4, 2, 1]) / 7 + b / 50
    rows = as_calibration_rows(np.zeros((3, 3)), [0, 1, 2], weights)
    for off in (np.inf, 0.5):
        found = fit_affine(np.zeros((3, 3)), rows, Penalty(0.1, off, 0.01))
        assert found.intercept == pytest.approx(b, abs=1e-6)
        assert (found.weight == (np.ones(3) if off == np.inf else np.eye(3))).all()


def searched_in_size_one(x, rows, penalty, scale, starts):
    """Search in logits of size 1, where the penalty is the one that is scaled."""
    full, k = np.isfinite(penalty.off_diagonal), rows.k
    unit = np.append(np.full(k * k if full else k, 1 / scale), np.ones(k))

    def scaled(t):
        value, slope = quick_objective(unit * t, x, rows, penalty, full)
        return value, unit * slope

    options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 40}
    return min(
        minimize(scaled, start / unit, jac=True, method="L-BFGS-B", options=options).fun
        for start in starts
    )


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e2, 1e4])
@PENALTIES
def test_the_optimum_is_found_whatever_the_scale_of_the_logits(penalty, scale):
    x, y = drawn(200, 5, 5, scale)
    rows = as_calibration_rows(x, y)
    found = fit_affine(x, rows, penalty)
    theta = np.append(found.weight, found.intercept)
    mine = quick_objective(theta, x, rows, penalty, np.isfinite(penalty.off_diagonal))[0]
    starts = [np.zeros(len(theta)), theta, np.full(len(theta), 0.2 / scale)]
    assert mine <= searched_in_size_one(x, rows, penalty, scale, starts) * (1 + 1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e4])
def test_the_optimum_is_found_with_many_classes_and_few_rows_at_any_scale(scale):
    x, y = drawn(75, 25, 9, scale)
    rows = as_calibration_rows(x, y)
    penalty = Penalty(diagonal=1 / 75, off_diagonal=3 * 25 * 24 / 75, intercept=3 * 25 / 75)
    found = fit_affine(x, rows, penalty)
    theta = np.append(found.weight, found.intercept)
    mine = quick_objective(theta, x, rows, penalty, full=True)[0]
    starts = [np.append(np.eye(25) * min(1.0, 1 / scale), np.zeros(25)), theta]
    assert mine <= searched_in_size_one(x, rows, penalty, scale, starts) * (1 + 1e-6)


def test_many_classes_rare_classes_and_weights_of_very_different_size():
    x, y = drawn(200, 50, 6, 2.0)
    rows = as_calibration_rows(x, y)
    for penalty in (DIAGONAL, Penalty(0.003, 0.1, 0.002)):
        found = fit_affine(x, rows, penalty)
        theta = np.append(found.weight, found.intercept)
        mine = quick_objective(theta, x, rows, penalty, found.weight.ndim == 2)[0]
        assert mine <= searched(x, rows, penalty) * (1 + 1e-6)
    x, y = drawn(300, 3, 7)
    y[:] = 0
    y[:3] = [1, 1, 2]
    for weights in (None, 10 ** np.random.default_rng(7).uniform(-6, 6, 300)):
        rows = as_calibration_rows(x, y, weights)
        for penalty in (DIAGONAL, FULL):
            found = fit_affine(x, rows, penalty)
            mine = objective(x, rows, penalty, found.weight, found.intercept)
            assert mine <= searched(x, rows, penalty) * (1 + 1e-6)


@PENALTIES
def test_separated_labels_are_held_back_by_the_penalty(penalty):
    x = 30.0 * (np.eye(4) - 0.25)[np.arange(40) % 4]
    found = fit_affine(x, as_calibration_rows(x, np.arange(40) % 4), penalty)
    assert np.isfinite(found.weight).all()
    diagonal = found.weight if found.weight.ndim == 1 else np.diag(found.weight)
    assert diagonal == pytest.approx(np.ones(4), abs=0.1)


@PENALTIES
def test_an_iron_penalty_leaves_the_identity(penalty):
    x, y = drawn(60, 3, 8)
    iron = Penalty(1e9, 1e9 if np.isfinite(penalty.off_diagonal) else np.inf, 1e9)
    found = fit_affine(x, as_calibration_rows(x, y), iron)
    identity = np.eye(3) if found.weight.ndim == 2 else np.ones(3)
    assert found.weight == pytest.approx(identity, abs=1e-8)
    assert found.intercept == pytest.approx(np.zeros(3), abs=1e-8)
