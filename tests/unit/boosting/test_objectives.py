"""Objectives: derivatives against autograd, finite differences and hand-computed values."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from tests.sentences import refuses

from calibrant.boosting.focal import FocalObjective
from calibrant.boosting.names import check_objective, make_objective, objectives
from calibrant.boosting.objective import find_start
from calibrant.errors import InputError
from calibrant.losses import as_loss
from calibrant.losses.class_weights import has_unknown_shift

LOSSES = [
    "ce",
    "ce:weight=balanced",
    "focal",
    "focal:gamma=0",
    "focal:gamma=0.5",
    "focal:gamma=7,weight=class_balanced",
    "focal:gamma=-1",
    "flsd",
    "flsd:gammas=[5,3,0],edges=[0.25,0.5],weight=balanced",
    "inverse_focal",
    "inverse_focal:gamma=1.5,weight=balanced",
    "label_smoothing",
    "label_smoothing:smoothing=0.3,others_only=true,weight=balanced",
    "logit_adjustment:tau=0.7",
    "logit_adjustment:weight=balanced",
    "balanced_softmax",
    "adafocal",
    "adafocal:mode=paper,n_bins=10,weight=balanced",
]
EXACT = {"xatol": 1e-9, "fatol": 1e-13, "maxiter": 10_000, "maxfev": 10_000}
EXTREME = np.array([-700.0, -90.0, -40.0, -12.0, -1.0, 0.0, 1e-9, 2.0, 38.0, 60.0, 800.0])


def rows(n_classes, n=400, seed=0):
    """Logits with extreme values, labels, and the train rows of each class."""
    draw = np.random.default_rng(seed)
    logits = draw.normal(size=(n, n_classes)) * draw.choice([0.1, 1.0, 5.0, 30.0], (n, 1))
    pairs = np.zeros((len(EXTREME), n_classes))
    pairs[:, -1] = EXTREME
    labels = draw.integers(0, n_classes, n + len(EXTREME))
    counts = np.array([70.0, 25.0, 4.0, 1.0])[:n_classes]
    return np.concatenate([logits, pairs]), labels, counts


def both(text, n_classes):
    """Return objective and torch loss of a name, steered alike."""
    logits, labels, counts = rows(n_classes)
    ours = make_objective(text, counts)
    loss = as_loss(text, class_counts=torch.tensor(counts)).double()
    loss.reduction = "sum"
    if ours.steered:
        for seed in range(3):
            steer, codes, _ = rows(n_classes, seed=seed + 1)
            ours.update(steer, codes)
            loss.update(torch.from_numpy(steer), torch.from_numpy(codes))
    return ours, loss, logits, labels


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("text", LOSSES)
def test_gradients_are_those_of_the_torch_losses(text, n_classes):
    ours, loss, logits, labels = both(text, n_classes)
    leaf = torch.tensor(logits, requires_grad=True)
    total = loss(leaf, torch.from_numpy(labels))
    total.backward()
    gradient, hessian = ours.derivatives(logits, labels)
    assert np.abs(gradient - leaf.grad.numpy()).max() < 1e-6
    assert (hessian > 0).all()
    assert np.isfinite(hessian).all()
    weights = ours.row_weights(labels)
    values = ours.values(logits, labels) * (1.0 if weights is None else weights)
    assert values.sum() == pytest.approx(total.item(), rel=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("text", LOSSES)
def test_gradients_are_the_slopes_of_the_values(text, n_classes):
    objective, _, _, _ = both(text, n_classes)
    draw = np.random.default_rng(3)
    logits, labels = draw.normal(size=(200, n_classes)) * 2, draw.integers(0, n_classes, 200)
    gradient, _ = objective.derivatives(logits, labels)
    weights = objective.row_weights(labels)
    step = 1e-6
    for k in range(n_classes):
        moved = np.zeros(n_classes)
        moved[k] = step
        rise = objective.values(logits + moved, labels) - objective.values(logits - moved, labels)
        slopes = rise / (2 * step) * (1.0 if weights is None else weights)
        calm = np.abs(rise) < 1e-4  # a gamma that jumps between the two points makes a step
        assert calm.mean() > 0.97
        assert slopes[calm] == pytest.approx(gradient[calm, k], abs=1e-6)


@pytest.mark.parametrize("text", ["ce", "focal:gamma=3", "focal:gamma=-1"])
def test_second_derivatives_are_exact_where_they_are_large_enough(text):
    objective = make_objective(text, np.ones(2))
    odds = np.linspace(-2.0, 6.0, 60)
    labels = np.ones(60, dtype=int)

    def slope(moved):
        return objective.derivatives(np.column_stack([np.zeros(60), moved]), labels)[0][:, 1]

    bent = (slope(odds + 1e-5) - slope(odds - 1e-5)) / 2e-5
    p = 1 / (1 + np.exp(-odds))
    _, hessian = objective.derivatives(np.column_stack([np.zeros(60), odds]), labels)
    assert hessian[:, 1] == pytest.approx(np.maximum(bent, p * np.abs(slope(odds))), rel=1e-5)


def test_cross_entropy_by_hand():
    objective = make_objective("ce", np.ones(3))
    logits = np.log([[0.7, 0.2, 0.1]])
    gradient, hessian = objective.derivatives(logits, np.array([1]))
    assert gradient[0] == pytest.approx([0.7, -0.8, 0.1])
    assert hessian[0] == pytest.approx([1.5 * 0.21, 1.5 * 0.16, 1.5 * 0.09])  # times K / (K - 1)


def test_focal_by_hand():
    objective = make_objective("focal:gamma=2,weight=[1,3]", np.ones(2))
    gradient, _ = objective.derivatives(np.zeros((1, 2)), np.array([1]))
    expected = 3 * 0.25 * (2 * 0.5 * np.log(0.5) - 0.5)  # w q^2 (2 p log p - q)
    assert gradient[0] == pytest.approx([-expected, expected])


@pytest.mark.parametrize("n_classes", [2, 4])
def test_derivatives_of_a_row_sum_to_zero(n_classes):
    for text in LOSSES:
        objective, _, logits, labels = both(text, n_classes)
        gradient, _ = objective.derivatives(logits, labels)
        assert np.abs(gradient.sum(axis=1)).max() < 1e-12


@pytest.mark.parametrize("text", LOSSES)
def test_the_shift_is_that_of_the_torch_loss(text):
    ours, loss, _, _ = both(text, 4)
    theirs = loss.log_shift()
    assert (ours.log_shift() is None) == (theirs is None)
    if theirs is not None:
        assert ours.log_shift() == pytest.approx(theirs.numpy(), abs=1e-6)
    assert ours.has_unknown_shift == has_unknown_shift(loss)


@pytest.mark.parametrize("text", [t for t in LOSSES if "ce" in t or "adjust" in t or "soft" in t])
def test_boosting_starts_at_the_best_constant_of_a_proper_loss(text):
    counts = np.array([70.0, 25.0, 4.0, 1.0])
    objective = make_objective(text, counts)
    if objective.log_shift() is None and objective.weight is not None:
        return  # label smoothing with weights has another best constant
    labels = np.repeat(np.arange(4), counts.astype(int))
    start = np.tile(objective.start(counts), (100, 1))
    gradient, _ = objective.derivatives(start, labels)
    assert np.abs(gradient.sum(axis=0)).max() < (1e-10 if "smoothing" not in text else 6.0)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("counts", [(98.0, 2.0), (70.0, 25.0, 4.0, 1.0)])
def test_boosting_starts_where_no_constant_is_better(gamma, counts):
    objective, counts = FocalObjective(gamma), np.array(counts)
    start = find_start(objective, counts)
    labels = np.arange(len(counts))
    gradient, _ = objective.derivatives(np.tile(start, (len(counts), 1)), labels)
    assert counts @ gradient == pytest.approx(0.0, abs=2e-5 * counts.sum())

    def loss(logits):
        return float(counts @ objective.values(np.tile(logits, (len(counts), 1)), labels))

    slow = minimize(loss, np.zeros(len(counts)), method="Nelder-Mead", options=EXACT)
    assert loss(start) == pytest.approx(slow.fun, rel=1e-7)
    if not gamma:
        assert np.exp(start) == pytest.approx(counts / counts.sum(), rel=1e-6)


@pytest.mark.parametrize("mode", ["robust", "paper"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gammas_are_those_of_the_torch_loss(mode, n_classes):
    ours, loss, _, _ = both(f"adafocal:mode={mode},n_bins=7", n_classes)
    assert ours.gammas == pytest.approx(loss.gammas.numpy(), rel=1e-9)
    assert ours.edges == pytest.approx(loss.edges.numpy(), rel=1e-9)
    mine, theirs = ours.history.to_dict(), loss.history.to_dict()
    assert list(mine) == list(theirs)
    assert mine["count"] == theirs["count"]
    assert np.array(mine["gamma"]) == pytest.approx(np.array(theirs["gamma"]), rel=1e-9)
    assert ours.gammas_range == (min(mine["gamma"][-1]), max(mine["gamma"][-1]))


def test_a_loss_without_an_objective_is_refused_with_those_that_have_one():
    for text in ("brier", "0.5*ce + 0.5*focal", "2*ce", "mypackage.losses:Mine", "foccal"):
        with refuses(InputError, *objectives()):
            check_objective(text)
    with refuses(InputError, "focal"):
        check_objective(lambda logits, labels: 0)


def test_unknown_options_are_refused():
    with refuses(InputError, "gama", "gamma"):
        check_objective("focal:gama=3")
    with refuses(InputError, "gamma", "400"):
        check_objective("focal:gamma=400")
    with refuses(InputError, "weight", "balanced"):
        check_objective("ce:weight=heavy")
    with refuses(InputError, "weight"):
        check_objective("ce:weight=[1,-2]")
    with refuses(InputError, "reduction"):
        check_objective("ce:reduction=none")
    with refuses(InputError, "weight", "3"):
        make_objective("ce:weight=[1,2]", np.ones(3))
