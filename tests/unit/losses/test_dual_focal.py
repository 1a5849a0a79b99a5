"""Dual focal loss: the class below the true one, and finite gradients for every gamma."""

import math

import numpy as np
import pytest
import torch
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.losses import (
    DualFocalLoss,
    as_loss,
    cross_entropy_loss,
    dual_focal_loss,
    focal_loss,
)
from calibrant.testing import check_loss
from calibrant.testing.loss_cases import drawn


def transcribed(logits, label, gamma):
    """One row, as the paper says it."""
    p = np.exp(logits - logits.max())
    p /= p.sum()
    below = p[p < p[label]]
    p_j = below.max() if len(below) else 0.0
    return -((1 - p[label] + p_j) ** gamma) * math.log(p[label])


@pytest.mark.parametrize(("label", "base"), [(0, 1 - 0.6 + 0.3), (1, 1 - 0.3 + 0.1), (2, 1 - 0.1)])
def test_three_classes_by_hand(label, base):
    p = [0.6, 0.3, 0.1]
    logits = torch.tensor([p], dtype=torch.float64).log()
    found = dual_focal_loss(logits, torch.tensor([label]), gamma=2)
    assert float(found) == pytest.approx(-(base**2) * math.log(p[label]), rel=1e-12)


@pytest.mark.parametrize("gamma", [0.0, 0.2, 1.0, 5.0, 20.0])
def test_it_is_the_papers_rule_row_by_row(gamma):
    logits, labels = drawn(6, 0, 100)
    found = DualFocalLoss(gamma, reduction="none")(logits, labels)
    slow = [transcribed(z, y, gamma) for z, y in zip(logits.numpy(), labels.tolist(), strict=True)]
    np.testing.assert_allclose(found.numpy(), slow, rtol=1e-11)


def test_with_shares_every_class_looks_below_itself():
    logits, labels = drawn(5, 1)
    logits[0, 1] = logits[0, 3]  # a tie is not strictly below
    shares = (torch.nn.functional.one_hot(labels, 5) + logits.flip(0).softmax(-1)) / 2
    found = dual_focal_loss(logits, shares, gamma=2.5, reduction="none")
    slow = [
        sum(float(q[k]) * transcribed(z.numpy(), k, 2.5) for k in range(5))
        for z, q in zip(logits, shares, strict=True)
    ]
    np.testing.assert_allclose(found.numpy(), slow, rtol=1e-11)


@pytest.mark.parametrize("gamma", [0.5, 3.0])
def test_of_two_classes_it_is_focal_loss_or_a_multiple(gamma):
    logits, labels = drawn(2, 2)
    ahead = logits.argmax(-1) == labels
    focal = focal_loss(logits, labels, gamma=gamma, reduction="none")
    found = dual_focal_loss(logits, labels, gamma=gamma, reduction="none")
    torch.testing.assert_close(found, focal * (1 + ahead.double()) ** gamma)


def test_gamma_0_is_cross_entropy():
    logits, labels = drawn(4, 3)
    found = dual_focal_loss(logits, labels, gamma=0)
    torch.testing.assert_close(found, cross_entropy_loss(logits, labels), rtol=1e-13, atol=0)


def test_tied_classes_are_not_below_each_other():
    row = torch.zeros(1, 4, dtype=torch.float64), torch.tensor([1])
    torch.testing.assert_close(dual_focal_loss(*row, gamma=3), focal_loss(*row, gamma=3))


@pytest.mark.parametrize("gamma", [0.2, 0.5])
def test_a_sure_row_has_a_finite_gradient(gamma):
    logits = torch.tensor([[60.0, 0.0, -60.0], [1e4, 0.0, -1e4]], requires_grad=True)
    dual_focal_loss(logits, torch.tensor([0, 0]), gamma=gamma).backward()
    assert bool(logits.grad.isfinite().all())


def test_classes_can_be_renamed():
    logits, labels = drawn(4, 4)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(
        dual_focal_loss(logits[:, order], order.argsort()[labels]), dual_focal_loss(logits, labels)
    )


@pytest.mark.parametrize("gamma", [0, 0.2, 1, 5, 20])
def test_it_keeps_the_contract(gamma):
    check_loss(f"dual_focal:gamma={gamma}")


def test_gamma_comes_from_text():
    assert "gamma=6.1" in repr(as_loss("dual_focal:gamma=6.1"))


@pytest.mark.parametrize("gamma", [-1, 101, float("nan")])
def test_a_gamma_out_of_range_is_refused(gamma):
    with refuses(InputError, "gamma", "number", "0 to 100"):
        DualFocalLoss(gamma)
