"""Sums of losses: values, gradients, what reaches the terms, and what is refused."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from tests.sentences import refuses
from torch import nn

from calibrant.errors import InputError
from calibrant.losses import BrierLoss, CrossEntropyLoss, FocalLoss, Loss, LossSum, as_loss

NOISE = torch.Generator().manual_seed(0)
LOGITS, LABELS = torch.randn(8, 3, generator=NOISE), torch.randint(0, 3, (8,), generator=NOISE)


def test_hand_computed_value():
    both = 0.5 * CrossEntropyLoss() + 2 * BrierLoss()
    found = both(torch.zeros(1, 2), torch.tensor([0]))
    assert found.item() == pytest.approx(0.5 * math.log(2) + 2 * 0.5)


def test_value_and_gradient_are_the_weighted_sums_of_the_terms():
    terms, factors = [CrossEntropyLoss(), FocalLoss(3), BrierLoss()], [0.5, -0.25, 2.0]
    leaf = LOGITS.clone().requires_grad_()
    total = LossSum(terms, factors)(leaf, LABELS)
    total.backward()
    value, grad = 0.0, torch.zeros_like(LOGITS)
    for term, factor in zip(terms, factors, strict=True):
        own = LOGITS.clone().requires_grad_()
        found = factor * term(own, LABELS)
        found.backward()
        value, grad = value + found.item(), grad + own.grad
    assert total.item() == pytest.approx(value)
    assert torch.allclose(leaf.grad, grad, atol=1e-7)


def test_sums_are_flat_and_factors_multiply():
    loss = 2 * (0.5 * CrossEntropyLoss() + FocalLoss() * 3) + BrierLoss()
    assert loss.factors == (1.0, 6.0, 1.0)
    assert len(loss.terms) == 3
    assert "factors=(1.0, 6.0, 1.0)" in repr(loss)
    assert LossSum.from_loss(loss) is loss
    assert LossSum([CrossEntropyLoss()]).factors == (1.0,)


def test_functions_modules_text_and_the_builtin_sum_can_be_added():
    ce = CrossEntropyLoss()
    value = ce(LOGITS, LABELS).item()
    for total in (
        ce + F.cross_entropy,
        F.cross_entropy + ce,
        ce + nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss() + ce,
        ce + "ce",
        sum([ce, CrossEntropyLoss()]),
    ):
        assert total(LOGITS, LABELS).item() == pytest.approx(2 * value)
    assert sum([ce]) is ce
    assert (np.float64(2) * ce + np.int64(1) * ce).factors == (2.0, 1.0)


def test_weights_and_state_of_terms_move_with_the_sum():
    loss = 0.5 * CrossEntropyLoss(weight=[1.0, 2.0, 3.0]) + as_loss("adafocal:n_bins=3")
    assert "terms.0.weight" in loss.state_dict()
    assert loss.double().terms[0].weight.dtype == torch.float64
    fresh = 0.5 * CrossEntropyLoss(weight=[1.0, 1.0, 1.0]) + as_loss("adafocal:n_bins=3")
    fresh.load_state_dict(loss.state_dict())
    assert fresh.terms[0].weight.tolist() == [1.0, 2.0, 3.0]


class Recorder(Loss):
    steered = True

    def __init__(self, every=None):
        super().__init__()
        self.update_every = every
        self.seen = []

    def set_epoch(self, epoch):
        self.seen.append(epoch)

    def update(self, logits, labels):
        self.seen.append(len(labels))

    def forward(self, logits, labels):
        return F.cross_entropy(logits, labels)


def test_what_steers_a_term_reaches_it_and_only_it():
    quiet, loud = CrossEntropyLoss(), Recorder()
    loss = 0.5 * quiet + 0.5 * loud + nn.CrossEntropyLoss()
    assert loss.steered
    assert not (quiet + FocalLoss()).steered
    loss.set_epoch(4)
    loss.update(LOGITS, LABELS)
    assert loud.seen == [4, 8]


def test_updates_come_as_often_as_the_keenest_term_asks():
    assert (Recorder(50) + Recorder(20) + CrossEntropyLoss()).update_every == 20
    assert (Recorder() + CrossEntropyLoss()).update_every is None


def test_shift_of_a_sum_is_the_one_its_terms_share():
    weighted = CrossEntropyLoss(weight=[1.0, 4.0, 2.0])
    shift = weighted.log_shift()
    assert torch.equal((2 * weighted).log_shift(), shift)
    assert torch.equal((weighted + CrossEntropyLoss(weight=[1, 4, 2])).log_shift(), shift)
    assert (weighted + CrossEntropyLoss()).log_shift() is None
    assert (weighted + CrossEntropyLoss(weight=[1, 4, 3])).log_shift() is None
    assert (weighted + nn.CrossEntropyLoss()).log_shift() is None
    assert (CrossEntropyLoss() + weighted).log_shift() is None


def test_terms_of_different_reductions_are_refused():
    loss = CrossEntropyLoss(reduction="none") + BrierLoss()
    with refuses(InputError, "share", "reduction", "gave shapes ()", "() and (8"):
        loss(LOGITS, LABELS)
    rows = CrossEntropyLoss(reduction="none") + BrierLoss(reduction="none")
    assert rows(LOGITS, LABELS).shape == (8,)


class Broken(nn.Module):
    def forward(self, logits, labels):
        return 0.5


def test_a_term_that_returns_no_tensor_is_named():
    with refuses(InputError, "torch tensor", "Broken returned 0.5"):
        (CrossEntropyLoss() + Broken())(LOGITS, LABELS)


@pytest.mark.parametrize("factor", [math.nan, math.inf, "2", None, True, [1.0]])
def test_factors_must_be_finite_numbers(factor):
    with refuses(InputError, "loss", "scaled", "finite number", "got"):
        CrossEntropyLoss() * factor
    with refuses(InputError, "sum", "losses needs", "finite factor per"):
        LossSum([CrossEntropyLoss()], [factor])


def test_a_sum_needs_terms_and_as_many_factors():
    for terms, factors in (([], None), ([CrossEntropyLoss()], [1.0, 2.0])):
        with refuses(InputError, "finite factor per", "loss"):
            LossSum(terms, factors)
