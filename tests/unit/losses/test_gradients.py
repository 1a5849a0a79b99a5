"""Every loss has a finite gradient wherever a model can go, and it is the derivative."""

import inspect
import math

import numpy as np
import pytest
import torch

from calibrant.losses import AdaFocalLoss, CalFocalLoss, as_loss, focal_loss, losses
from calibrant.testing.loss_cases import drawn, expect_near, extremes, gradient, numeric_gradient

GAMMAS = (0, 0.2, 0.5, 1, 2, 5, 20, -2)
CLASSES = (2, 7)


def steered(loss, k):
    for seed in range(3):
        loss.update(*drawn(k, seed, 400))
    return loss


def adafocal(gamma, k):
    loss = steered(AdaFocalLoss(), k)
    loss.gammas.fill_(gamma)
    return loss


# How a loss is given one gamma; those that take no negative one are named below.
WITH_GAMMA = {
    "adafocal": adafocal,
    "dual_focal": lambda gamma, k: losses()["dual_focal"](gamma),
    "flsd": lambda gamma, k: losses()["flsd"](gammas=(gamma, gamma / 2, gamma)),
    "focal": lambda gamma, k: losses()["focal"](gamma),
    "inverse_focal": lambda gamma, k: losses()["inverse_focal"](gamma),
    "scheduled_focal": lambda gamma, k: losses()["scheduled_focal"](gammas=(gamma,), epochs=()),
}
LOWEST = {"dual_focal": 0, "flsd": 0, "inverse_focal": 0}
LARGEST = {"inverse_focal": 5}
PAIRS = [
    (name, gamma)
    for name in WITH_GAMMA
    for gamma in GAMMAS
    if LOWEST.get(name, -5) <= gamma <= LARGEST.get(name, 100)
]


def without_gamma(name, k):
    counts = [100 // (i + 1) for i in range(k)]
    if name == "cost_sensitive":
        return losses()[name](np.ones((k, k)) - np.eye(k) + np.eye(k, k=1))
    if name == "calfocal":
        return steered(CalFocalLoss(per="bin"), k)
    return as_loss(name, class_counts=counts)


WITHOUT_GAMMA = sorted(set(losses()) - set(WITH_GAMMA))


def assert_finite(loss, k):
    """In three precisions, and in two kinds of mixed precision."""
    modes = {
        None: (torch.float32, torch.bfloat16, torch.float16),
        torch.bfloat16: (torch.float32, torch.bfloat16),
        torch.float16: (torch.float32, torch.float16),
    }
    for mixed, types in modes.items():
        with torch.autocast("cpu", dtype=mixed or torch.bfloat16, enabled=mixed is not None):
            for what, wide, labels in extremes(k):
                for dtype in types:
                    value, grad = gradient(loss, wide.to(dtype), labels)
                    assert bool(value.isfinite()), (what, dtype, mixed)
                    assert bool(grad.isfinite().all()), (what, dtype, mixed)
                    assert grad.dtype == dtype


def assert_derivative(loss, k):
    logits, labels = drawn(k, 3, 2 * k)
    for scale in (0.5, 2.0):
        _, grad = gradient(loss, scale * logits, labels)
        expect_near("the gradient", numeric_gradient(loss, scale * logits, labels), grad, 1e-6)


@pytest.mark.filterwarnings("ignore:inverse focal loss with gamma")
def test_gradient_with_gamma_is_finite_and_the_derivative(subtests):
    for k in CLASSES:
        for name, gamma in PAIRS:
            with subtests.test(f"{name}, gamma {gamma}, {k} classes"):
                loss = WITH_GAMMA[name](gamma, k)
                assert_finite(loss, k)
                assert_derivative(loss, k)


def test_gradient_without_gamma_is_finite_and_the_derivative(subtests):
    for k in CLASSES:
        for name in WITHOUT_GAMMA:
            with subtests.test(f"{name}, {k} classes"):
                loss = without_gamma(name, k)
                assert_finite(loss, k)
                assert_derivative(loss, k)


def test_every_loss_that_has_a_gamma_is_tried_with_each():
    for name, loss in losses().items():
        takes = inspect.signature(loss).parameters
        asks = any(option in takes for option in ("gamma", "gammas", "gamma_init"))
        assert asks == (name in WITH_GAMMA), name
    assert {gamma for name, gamma in PAIRS if name == "focal"} == set(GAMMAS)


def test_gamma_of_each_row_by_its_own_confidence_is_finite_too():
    for k in CLASSES:
        assert_finite(steered(CalFocalLoss(per="sample", strength=100.0), k), k)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_shares_have_finite_gradients_too(gamma):
    for k in CLASSES:
        for _, wide, labels in extremes(k):
            shares = (torch.eye(k)[labels] + 1 / k) / 2
            for dtype in (torch.float32, torch.bfloat16, torch.float16):
                leaf = wide.to(dtype).requires_grad_()
                focal_loss(leaf, shares, gamma=gamma).backward()
                assert bool(leaf.grad.isfinite().all())


def naive_focal(logits, labels, gamma):
    """The formula as it is written in most libraries."""
    p = logits.softmax(-1).gather(-1, labels[:, None]).squeeze(-1)
    return -((1 - p) ** gamma * p.log()).mean()


@pytest.mark.parametrize("gamma", [0.2, 0.5])
def test_naive_formula_has_no_gradient_for_a_sure_row_and_ours_has(gamma):
    labels = torch.tensor([0])
    for loss, finite in ((naive_focal, False), (focal_loss, True)):
        logits = torch.tensor([[60.0, 0.0]], requires_grad=True)
        value = loss(logits, labels, gamma=gamma)
        value.backward()
        assert bool(value.isfinite())  # so a look at the value does not catch it
        assert bool(logits.grad.isfinite().all()) is finite


def test_gradient_of_a_sure_row_is_exact_where_1_minus_p_is_0():
    d, gamma = 60.0, 0.2
    logits = torch.tensor([[d, 0.0]], requires_grad=True)
    focal_loss(logits, torch.tensor([0]), gamma=gamma).backward()
    rest = math.exp(-d)  # 1 - p, and -log p too, to 26 digits
    expected = -(1 + gamma) * rest ** (1 + gamma)
    assert logits.grad[0].tolist() == pytest.approx([expected, -expected], rel=1e-4)
