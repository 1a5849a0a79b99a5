"""Focal loss: its values, its gradient against cross-entropy's, and the model that it asks for."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from scipy.optimize import minimize
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.fitting.gammas import check_gamma
from calibrant.losses import FocalLoss, as_loss, focal_loss
from calibrant.losses.focal import focal_of_odds


def plain_focal(logits, labels, gamma):
    """The definition in NumPy and float64, row by row."""
    values = []
    for z, y in zip(np.asarray(logits, dtype=np.float64), labels.tolist(), strict=True):
        p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        base = 1 - p[y] if gamma >= 0 else 1 + p[y]
        values.append(-(base ** abs(gamma)) * np.log(p[y]))
    return np.array(values)


def drawn(n=20, k=4, seed=0):
    noise = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, k, generator=noise, dtype=torch.float64)
    return logits, torch.randint(0, k, (n,), generator=noise)


def logits_of(p):
    """Two classes, the first with probability p."""
    return torch.tensor([[math.log(p / (1 - p)), 0.0]], dtype=torch.float64, requires_grad=True)


def asked_for(eta, gamma):
    """The probabilities that minimise the expected loss when the truth is eta."""
    shares = torch.tensor([eta], dtype=torch.float64)

    def risk(z):
        logits = torch.tensor(z[None], requires_grad=True)
        value = focal_loss(logits, shares, gamma=gamma)
        value.backward()
        return value.item(), logits.grad.numpy()[0]

    found = minimize(risk, np.log(eta), jac=True, tol=1e-14)
    return np.exp(found.x) / np.exp(found.x).sum()


FIRST = torch.tensor([0])


def test_hand_computed_values():
    logits = logits_of(0.8).detach()
    for gamma, value in ((0, 1.0), (1, 0.2), (2, 0.04), (0.5, 0.2**0.5), (-1, 1.8), (-2, 3.24)):
        found = focal_loss(logits, FIRST, gamma=gamma).item()
        assert found == pytest.approx(-value * math.log(0.8), rel=1e-12)


@pytest.mark.parametrize("gamma", [0, 0.2, 0.5, 1, 2, 5, 20, -0.5, -2])
def test_values_are_those_of_the_plain_formula(gamma):
    logits, labels = drawn()
    found = focal_loss(logits, labels, gamma=gamma, reduction="none")
    assert np.allclose(found, plain_focal(logits, labels, gamma), rtol=1e-10)


@pytest.mark.parametrize("labels", [torch.tensor([0, 2, 1]), torch.full((3, 3), 1 / 3)])
def test_gamma_0_is_cross_entropy(labels):
    logits = torch.randn(3, 3, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(focal_loss(logits, labels, gamma=0), F.cross_entropy(logits, labels))


# Where the gradient of focal loss is as large as that of cross-entropy.
CROSSINGS = {1: 0.368, 2: 0.298, 3: 0.253, 4: 0.221, 5: 0.197, 10: 0.131, 20: 0.081}


@pytest.mark.parametrize(("gamma", "crossing"), CROSSINGS.items())
def test_gradient_is_cross_entropys_times_a_factor(gamma, crossing):
    def factor(p):
        ours, theirs = logits_of(p), logits_of(p)
        focal_loss(ours, FIRST, gamma=gamma).backward()
        F.cross_entropy(theirs, FIRST).backward()
        ratio = (ours.grad / theirs.grad)[0]
        assert ratio[0] == pytest.approx(ratio[1].item())
        expected = (1 - p) ** gamma - gamma * p * (1 - p) ** (gamma - 1) * math.log(p)
        assert ratio[0].item() == pytest.approx(expected, rel=1e-9)
        return expected

    assert factor(crossing - 6e-4) > 1 > factor(crossing + 6e-4)
    if gamma in (1, 20):
        largest = max(factor(p) for p in np.linspace(0.005, 0.4, 80))
        assert largest == pytest.approx({1: 1.14, 20: 1.74}[gamma], abs=0.005)


@pytest.mark.parametrize("gamma", [0.2, 2.0, 20.0, -2.0])
def test_a_row_that_is_wholly_wrong_has_the_gradient_of_cross_entropy(gamma):
    logits = torch.tensor([[-1e4, 1e4]], requires_grad=True)
    focal_loss(logits, FIRST, gamma=gamma).backward()
    assert logits.grad.tolist() == [[-1.0, 1.0]]


def test_class_weights_stay_outside_the_power():
    logits, weight = logits_of(0.5).detach(), [4.0, 1.0]
    modulator = focal_loss(logits, FIRST, weight=weight, reduction="sum") / (4 * math.log(2))
    assert modulator.item() == pytest.approx(0.25)
    powered = torch.exp(
        -F.cross_entropy(logits, FIRST, torch.tensor(weight).double(), reduction="none")
    )
    assert ((1 - powered) ** 2).item() == pytest.approx(0.879, abs=5e-4)  # p ** 4 inside it


def test_shares_have_a_modulator_per_class():
    logits = logits_of(0.8).detach()
    shares = torch.tensor([[0.75, 0.25]], dtype=torch.float64)
    expected = -0.75 * 0.2**2 * math.log(0.8) - 0.25 * 0.8**2 * math.log(0.2)
    assert focal_loss(logits, shares).item() == pytest.approx(expected)
    other_form = (1 - 0.75 * 0.8 - 0.25 * 0.2) ** 2 * F.cross_entropy(logits, shares).item()
    assert abs(other_form - expected) > 0.01


# eta of the first class: what a perfect model trained with each gamma says.
BINARY = {
    1: {0.6: 0.557, 0.8: 0.686, 0.9: 0.774, 0.99: 0.927},
    2: {0.6: 0.538, 0.8: 0.627, 0.9: 0.694, 0.99: 0.846},
    3: {0.6: 0.528, 0.8: 0.595, 0.9: 0.647, 0.99: 0.780},
    5: {0.6: 0.518, 0.8: 0.562, 0.9: 0.597, 0.99: 0.695},
    10: {0.6: 0.510, 0.8: 0.533, 0.9: 0.552, 0.99: 0.608},
    -0.5: {0.6: 0.633, 0.8: 0.848},
    -1: {0.6: 0.698, 0.8: 0.892},
    -2: {0.6: 0.871, 0.8: 0.948},
}


@pytest.mark.parametrize("gamma", BINARY)
def test_the_model_asked_for_is_less_sure_and_with_inverse_focal_surer(gamma):
    for eta, q in BINARY[gamma].items():
        found = asked_for([eta, 1 - eta], gamma)[0]
        assert found == pytest.approx(q, abs=6e-4)
        assert (found < eta) == (gamma > 0)


def test_the_model_asked_for_with_three_classes_and_its_closed_form():
    eta = [0.8, 0.15, 0.05]
    q = asked_for(eta, 3)
    assert q == pytest.approx([0.550, 0.305, 0.146], abs=6e-4)
    h = q / ((1 - q) ** 3 - 3 * q * (1 - q) ** 2 * np.log(q))
    assert h / h.sum() == pytest.approx(eta, abs=1e-6)
    assert asked_for(eta, 0) == pytest.approx(eta, abs=1e-6)  # cross-entropy is proper


def test_gamma_may_differ_by_row_and_takes_no_gradient():
    gammas = torch.tensor([0.0, 0.2, 2.0, 20.0, -0.5, -2.0], dtype=torch.float64)
    odds = torch.linspace(-3, 3, 6, dtype=torch.float64, requires_grad=True)
    learned = gammas.clone().requires_grad_()
    found = focal_of_odds(odds, learned)
    alone = [focal_of_odds(odds[i : i + 1], float(gammas[i])) for i in range(6)]
    assert torch.allclose(found, torch.cat(alone))
    found.sum().backward()
    assert learned.grad is None
    (expected,) = torch.autograd.grad(torch.cat(alone).sum(), odds)
    assert torch.allclose(odds.grad, expected)


def test_focal_loss_falls_as_the_true_class_becomes_surer():
    odds = torch.linspace(-20, 20, 200, dtype=torch.float64)
    for gamma in (0.0, 0.5, 2.0, 20.0, -1.0, -3.5):
        assert bool((focal_of_odds(odds, gamma).diff() < 0).all())
    assert not bool((focal_of_odds(odds, -3.7).diff() < 0).all())  # known of inverse focal


@pytest.mark.parametrize("gamma", [-5.1, 100.1, math.nan, math.inf, "2", None, True, [2.0], 1j])
def test_gamma_out_of_range_is_refused(gamma):
    for make in (
        lambda: FocalLoss(gamma),
        lambda: focal_loss(torch.zeros(1, 2), FIRST, gamma=gamma),
    ):
        with refuses(InputError, "gamma", "number", "-5 to 100", "got"):
            make()


@pytest.mark.parametrize("gamma", [2, 2.0, np.float64(2), np.float32(2), np.int64(2), np.uint8(2)])
def test_gamma_may_be_any_real_number(gamma):
    logits = logits_of(0.8)
    value = FocalLoss(gamma)(logits, FIRST)
    value.backward()
    assert value.item() == pytest.approx(-0.04 * math.log(0.8))
    assert "gamma=2" in repr(FocalLoss(gamma))


def test_bounds_and_name_of_gamma_can_be_others():
    check_gamma(0.0, low=0.0)
    with refuses(InputError, "strength", "number", "0 to 100", "got -1"):
        check_gamma(-1.0, low=0.0, name="strength")


def test_module_and_function_agree():
    logits, labels = drawn()
    options = {"weight": [1.0, 2.0, 3.0, 4.0], "ignore_index": 2, "reduction": "sum"}
    module = FocalLoss(gamma=3, **options)
    assert torch.equal(module(logits, labels), focal_loss(logits, labels, gamma=3, **options))
    assert as_loss("focal:gamma=3").gamma == 3
    assert FocalLoss().gamma == 2.0


@pytest.mark.parametrize("shares", [False, True])
def test_compiled_loss_is_the_loss(shares):
    logits, labels = drawn()
    target = logits.softmax(-1).flip(0) if shares else labels.where(labels != 3, -100)
    loss = FocalLoss(gamma=0.5, weight=[1.0, 2.0, 3.0, 4.0])
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    plain, fast = loss(ours, target), compiled(theirs, target)
    plain.backward()
    fast.backward()
    assert plain.item() == pytest.approx(fast.item(), rel=1e-12)
    assert torch.allclose(ours.grad, theirs.grad, rtol=1e-12)
