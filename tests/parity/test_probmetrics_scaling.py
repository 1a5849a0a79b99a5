"""probmetrics: structured and quadratic scaling reach its objective, on its own fitters' rows."""

import numpy as np
import pytest
import torch
from probmetrics.calibrators import BinaryLogisticCalibrator, SMSCalibrator, SVSCalibrator
from tests.parity.peer_rows import drawn

from calibrant.calibrators import (
    PlattScaling,
    QuadraticScaling,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
)
from calibrant.calibrators.base.affine_calibrator import centre_rows
from calibrant.convert import log_probs_from_logits
from calibrant.metrics import nll

MULTICLASS = ("multiclass", "long_tailed")


def every_class(name, n, seed):
    labels, probs = drawn(name, n, seed)
    labels[: probs.shape[1]] = np.arange(probs.shape[1])
    return labels, probs


def objective(x, labels, weight, b, strength):
    """NLL plus the penalty of SVS (strength of the diagonal) or SMS (of both)."""
    n, k = x.shape
    z = x * weight if weight.ndim == 1 else x @ weight.T
    loss = -log_probs_from_logits(z + b)[np.arange(n), labels].mean()
    diagonal = weight if weight.ndim == 1 else np.diag(weight)
    penalty = ((diagonal - 1) ** 2).sum() + (b**2).sum()
    if weight.ndim == 2:
        penalty += (k - 1) * ((weight - np.diag(diagonal)) ** 2).sum()
    return float(loss + strength * k / n * penalty)


def warm(logits, labels):
    """Return the features of both: logs of cooled probabilities with 1 / (n + 1) of doubt."""
    t = TemperatureScaling(smooth=True).fit(logits, labels).temperature_
    n, k = logits.shape
    cooled = np.exp(log_probs_from_logits(logits / t))
    return centre_rows(np.log(cooled * n / (n + 1) + 1 / (n + 1) / k))


@pytest.mark.parametrize("strength", [0.1, 1.0])
@pytest.mark.parametrize("name", MULTICLASS)
def test_the_vectors_objective_is_never_above_theirs(name, strength):
    labels, probs = every_class(name, 600, 0)
    logits, k = np.log(probs), probs.shape[1]
    x = warm(logits, labels)
    ours = StructuredVectorScaling(strength=strength).fit(logits, labels)
    each = strength * k / 600
    v, b = SVSCalibrator()._fit_bfgs(torch.tensor(x), torch.tensor(labels), k, each, each)
    mine = objective(x, labels, ours.weight_, ours.intercept_, strength)
    theirs = objective(x, labels, v, b, strength)
    assert mine <= theirs * (1 + 1e-6)
    assert mine == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("strength", [0.1, 1.0])
@pytest.mark.parametrize("name", MULTICLASS)
def test_the_matrix_objective_is_never_above_theirs(name, strength):
    labels, probs = every_class(name, 600, 1)
    logits, k = np.log(probs), probs.shape[1]
    x = warm(logits, labels)
    ours = StructuredMatrixScaling(strength=strength).fit(logits, labels)
    each = strength * k / 600
    found = SMSCalibrator()._fit_bfgs(
        torch.tensor(x), torch.tensor(labels), k, each, each, each * (k - 1)
    )
    mine = objective(x, labels, ours.weight_, ours.intercept_, strength)
    theirs = objective(x, labels, found[:, :-1], found[:, -1], strength)
    assert mine <= theirs * (1 + 1e-6)
    assert mine == pytest.approx(theirs, rel=1e-4)


def paired(fresh, mine, theirs):
    """Return how much lower our log loss is on fresh rows, and the standard error of that."""
    each = np.arange(len(fresh))
    gap = np.log(mine[each, fresh]) - np.log(theirs[each, fresh])
    return gap.mean(), gap.std() / np.sqrt(len(gap))


@pytest.mark.parametrize(("n", "fits"), [(200, 8), (1000, 4)])
@pytest.mark.parametrize("name", ["multiclass", "long_tailed"])
@pytest.mark.parametrize(
    ("peer", "method"),
    [(SVSCalibrator, StructuredVectorScaling), (SMSCalibrator, StructuredMatrixScaling)],
    ids=["svs", "sms"],
)
def test_on_fresh_rows_the_whole_methods_agree(name, n, fits, peer, method):
    fresh, asked = drawn(name, 3000, 99)
    gaps = []
    for seed in range(fits):
        labels, probs = every_class(name, n, seed)
        theirs = peer().fit(probs, labels).predict_proba(asked)
        mine = method().fit(np.log(probs), labels).predict_proba(np.log(asked))
        gaps.append(paired(fresh, mine, theirs)[0])
    # One difference remains: theirs scales log-probabilities, ours the same less their mean.
    assert np.mean(gaps) >= -2 * np.std(gaps) / np.sqrt(fits) - 0.002


@pytest.mark.filterwarnings("ignore:'penalty' was deprecated")  # of LogisticRegression
@pytest.mark.parametrize(
    ("kind", "method"), [("affine", PlattScaling), ("quadratic", QuadraticScaling)]
)
@pytest.mark.parametrize("name", ["binary", "calibrated", "tied", "rare"])
@pytest.mark.parametrize("seed", range(2))
def test_lines_and_parabolas_fit_no_worse_than_theirs(kind, method, name, seed):
    labels, probs = drawn(name, 1500, seed)
    probs = np.clip(probs, 1e-6, 1 - 1e-6).astype(np.float32).astype(np.float64)
    z = np.log(probs) - np.log1p(-probs)
    peer = BinaryLogisticCalibrator(kind).fit(np.column_stack([1 - probs, probs]), labels)
    # In double precision: their answers are single, which costs or gains a little by chance.
    theirs = 1 / (1 + np.exp(-np.polynomial.polynomial.polyval(z, peer.cal_.coef_[0])))
    mine = method(shrink=None).fit(z, labels).predict_proba(z)
    assert nll(labels, mine) <= nll(labels, theirs) * (1 + 1e-6)
    fresh, asked = drawn(name, 4000, 10 + seed)
    asked = np.clip(asked, 1e-6, 1 - 1e-6)
    two = np.column_stack([1 - asked, asked])
    p = method(shrink=None).fit(z, labels).predict_proba(np.log(two))
    gap, error = paired(fresh, p, peer.predict_proba(two))
    assert gap >= -2 * error - 1e-4


@pytest.mark.filterwarnings("ignore:'penalty' was deprecated")  # of LogisticRegression
def test_beyond_the_fitted_scores_their_parabola_runs_away_and_ours_does_not():
    rng = np.random.default_rng(4)
    z = rng.uniform(-2, 2, 2000)
    labels = (rng.random(2000) < 1 / (1 + np.exp(-(z - 0.3 * z * z)))).astype(int)
    probs = 1 / (1 + np.exp(-z))
    peer = BinaryLogisticCalibrator("quadratic").fit(np.column_stack([1 - probs, probs]), labels)
    sure = 1 / (1 + np.exp(-np.array([2.0, 10.0])))
    theirs = peer.predict_proba(np.column_stack([1 - sure, sure]))[:, 1]
    mine = QuadraticScaling(shrink=None).fit(z, labels).predict_proba([2.0, 10.0])
    assert mine[0] == pytest.approx(theirs[0], abs=1e-3)
    assert theirs[1] < 1e-4 < mine[1]


def test_logits_that_probabilities_round_away_are_kept_here():
    rng = np.random.default_rng(5)
    y = np.arange(900) % 3
    logits = 30.0 * (rng.normal(size=(900, 3)) + 1.5 * np.eye(3)[y])
    probs = np.exp(log_probs_from_logits(logits)).astype(np.float32)
    probs /= probs.sum(axis=1, keepdims=True)
    peer = SVSCalibrator().fit(probs, y).predict_proba(probs)
    ours = StructuredVectorScaling().fit(logits, y).predict_proba(logits)
    right = np.arange(900), y
    assert -np.log(ours[right]).mean() < -np.log(np.maximum(peer[right], 1e-12)).mean()
