"""Cross-entropy with a reward for doubt: by hand, against torch, and its minimiser."""

import math

import pytest
import torch
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.losses import (
    EntropyPenaltyLoss,
    as_loss,
    cross_entropy_loss,
    entropy_penalty_loss,
)
from calibrant.testing import check_loss
from calibrant.testing.loss_cases import drawn


def asked_for(p, strength):
    """The shares for which p is the best answer."""
    log_p = p.log()
    entropy = -(p * log_p).sum()
    return p * (1 + strength * (log_p + entropy))


def test_a_row_by_hand():
    logits = torch.tensor([[0.8, 0.2]], dtype=torch.float64).log()
    entropy = -0.8 * math.log(0.8) - 0.2 * math.log(0.2)
    found = entropy_penalty_loss(logits, torch.tensor([0]), strength=0.3)
    assert float(found) == pytest.approx(-math.log(0.8) - 0.3 * entropy, rel=1e-12)


@pytest.mark.parametrize("strength", [0.1, 2.0])
def test_it_is_cross_entropy_less_torchs_entropy(strength):
    logits, labels = drawn(5, 0)
    entropy = torch.distributions.Categorical(logits=logits).entropy()
    loss = EntropyPenaltyLoss(strength, reduction="none")
    plain = cross_entropy_loss(logits, labels, reduction="none")
    torch.testing.assert_close(
        loss(logits, labels), plain - strength * entropy, rtol=1e-12, atol=1e-14
    )


def test_shares_have_one_entropy_per_row():
    logits, labels = drawn(4, 1)
    shares = (torch.nn.functional.one_hot(labels, 4) + logits.flip(0).softmax(-1)) / 2
    entropy = torch.distributions.Categorical(logits=logits).entropy()
    found = entropy_penalty_loss(logits, shares, strength=0.5, reduction="none")
    plain = cross_entropy_loss(logits, shares, reduction="none")
    torch.testing.assert_close(found, plain - 0.5 * entropy, rtol=1e-12, atol=1e-14)


def test_the_entropy_is_not_divided_by_the_classes():
    for k in (2, 10, 100):
        found = entropy_penalty_loss(torch.zeros(1, k), torch.tensor([0]), strength=1)
        assert float(found) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("strength", [0.1, 0.5])
def test_the_model_it_asks_for_is_the_documented_one_and_less_sure(strength):
    p = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
    eta = asked_for(p, strength)
    assert float(eta.sum()) == pytest.approx(1)
    assert float(eta.max()) > 0.6
    logits = p.log()[None].requires_grad_()
    entropy_penalty_loss(logits, eta[None], strength=strength).backward()
    assert float(logits.grad.abs().max()) < 1e-15


def test_classes_can_be_renamed():
    logits, labels = drawn(4, 2)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(
        entropy_penalty_loss(logits[:, order], order.argsort()[labels]),
        entropy_penalty_loss(logits, labels),
    )


def test_it_keeps_the_contract():
    check_loss("entropy_penalty")
    check_loss("entropy_penalty:strength=3")


def test_strength_comes_from_text():
    assert "strength=0.25" in repr(as_loss("entropy_penalty:strength=0.25"))


@pytest.mark.parametrize("strength", [-0.1, float("inf"), "strong"])
def test_a_strength_out_of_range_is_refused(strength):
    with refuses(InputError, "strength", "number", "0 to 100"):
        EntropyPenaltyLoss(strength)
