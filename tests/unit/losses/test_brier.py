"""Brier loss: by hand, against scikit-learn, and that it asks for the true posterior."""

import numpy as np
import pytest
import torch
from sklearn.metrics import brier_score_loss

from calibrant.losses import BrierLoss, brier_loss
from calibrant.testing import check_loss
from calibrant.testing.loss_cases import drawn


def test_three_classes_by_hand():
    logits = torch.tensor([[0.7, 0.2, 0.1]], dtype=torch.float64).log()
    each = [float(brier_loss(logits, torch.tensor([label]))) for label in range(3)]
    assert each == pytest.approx([0.09 + 0.04 + 0.01, 0.49 + 0.64 + 0.01, 0.49 + 0.04 + 0.81])


def test_two_classes_are_twice_the_score_of_scikit_learn():
    logits, labels = drawn(2, 0, 200)
    theirs = brier_score_loss(labels.numpy(), logits.softmax(-1)[:, 1].numpy())
    assert float(BrierLoss()(logits, labels)) == pytest.approx(2 * theirs, rel=1e-12)


def test_it_is_its_formula_for_classes_and_for_shares():
    logits, labels = drawn(6, 1)
    p = logits.softmax(-1).numpy()
    whole = np.eye(6)[labels.numpy()]
    found = brier_loss(logits, labels, reduction="none").numpy()
    np.testing.assert_allclose(found, ((p - whole) ** 2).sum(1), rtol=1e-12)
    shares = (whole + p[::-1]) / 2
    found = brier_loss(logits, torch.from_numpy(shares), reduction="none").numpy()
    np.testing.assert_allclose(found, ((p - shares) ** 2).sum(1), rtol=1e-12)


def test_it_is_0_only_at_the_shares():
    p = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)
    logits = p.log().requires_grad_()
    loss = brier_loss(logits, p)
    loss.backward()
    assert float(loss.detach()) < 1e-30
    assert float(logits.grad.abs().max()) < 1e-15
    assert float(brier_loss(p.log(), p.flip(1))) > 0.1


def test_many_labels_ask_for_their_frequencies():
    labels = torch.tensor([0] * 6 + [1] * 3 + [2])
    p = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
    logits = p.log().expand(10, 3).clone().requires_grad_()
    brier_loss(logits, labels).backward()
    assert float(logits.grad.sum(0).abs().max()) < 1e-15


def test_a_sure_row_keeps_its_distance():
    logits = torch.tensor([[40.0, 0.0]])  # p rounds to 1, yet 1 - p is exp(-40)
    found = float(brier_loss(logits, torch.tensor([0])))
    assert found == pytest.approx(2 * np.exp(-80.0), rel=1e-5)


def test_classes_can_be_renamed():
    logits, labels = drawn(4, 2)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(
        brier_loss(logits[:, order], order.argsort()[labels]), brier_loss(logits, labels)
    )


def test_it_keeps_the_contract():
    check_loss("brier")


def test_weights_move_the_minimiser_by_log_shift():
    eta, weight = torch.tensor([0.6, 0.3, 0.1]).double(), torch.tensor([1.0, 2.0, 5.0])
    loss = BrierLoss(weight=weight, reduction="none")
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    step = torch.optim.LBFGS([logits], max_iter=200, line_search_fn="strong_wolfe")

    def risk():
        step.zero_grad()
        value = (eta * loss(logits.expand(3, 3), torch.arange(3))).sum()
        value.backward()
        return value

    step.step(risk)
    undone = torch.softmax(logits.detach() - loss.log_shift(), 0)
    torch.testing.assert_close(undone, eta, atol=1e-4, rtol=0)
