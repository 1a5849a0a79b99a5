"""Logit adjustment: by hand, against torch, and the way back to the train split's posterior."""

import math

import pytest
import torch
from tests.sentences import refuses
from torch.nn.functional import cross_entropy

from calibrant.errors import InputError
from calibrant.losses import (
    LogitAdjustmentLoss,
    as_loss,
    balanced_softmax_loss,
    cross_entropy_loss,
    logit_adjustment_loss,
)
from calibrant.losses.logit_adjustment import log_prior
from calibrant.testing import check_loss
from calibrant.testing.loss_cases import drawn

COUNTS = [70, 20, 10]


def test_a_row_by_hand():
    logits = torch.tensor([[1.0, 2.0]], dtype=torch.float64).log()
    found = logit_adjustment_loss(logits, torch.tensor([1]), class_counts=[80, 20], tau=2)
    by_hand = -math.log(2 * 0.2**2 / (2 * 0.2**2 + 0.8**2))
    assert float(found) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("tau", [0.5, 1.0, 2.0])
def test_it_is_torchs_cross_entropy_of_moved_logits(tau):
    logits, labels = drawn(3, 0)
    moved = logits + tau * (torch.tensor(COUNTS, dtype=torch.float64) / 100).log()
    found = logit_adjustment_loss(logits, labels, class_counts=COUNTS, tau=tau)
    torch.testing.assert_close(found, cross_entropy(moved, labels), rtol=1e-12, atol=0)
    torch.testing.assert_close(LogitAdjustmentLoss(COUNTS, tau=tau)(logits, labels), found)


@pytest.mark.parametrize("tau", [0.0, 1.0, 1.5])
@pytest.mark.parametrize("weight", [None, [1.0, 3.0, 0.5]])
def test_the_shift_leads_a_perfect_model_back_to_the_posterior(tau, weight):
    eta = torch.tensor([[0.6, 0.3, 0.1]], dtype=torch.float64)
    loss = LogitAdjustmentLoss(COUNTS, tau=tau, weight=weight).double()
    logits = (eta.log() + loss.log_shift()).requires_grad_()
    loss(logits, eta).backward()
    assert float(logits.grad.abs().max()) < 1e-7  # so no other model has a lower loss
    back = (logits - loss.log_shift()).softmax(-1)
    torch.testing.assert_close(back, eta)


def test_plain_logits_are_those_of_equally_frequent_classes():
    # Class given x is prior times likelihood; a perfect model must keep the likelihood alone.
    likelihood = torch.tensor([[0.2, 0.5, 0.9]], dtype=torch.float64)
    prior = torch.tensor(COUNTS, dtype=torch.float64) / 100
    eta = likelihood * prior / (likelihood * prior).sum()
    logits = likelihood.log().requires_grad_()
    logit_adjustment_loss(logits, eta, class_counts=COUNTS).backward()
    assert float(logits.grad.abs().max()) < 1e-15


def test_tau_0_is_cross_entropy_and_tau_1_is_balanced_softmax():
    logits, labels = drawn(3, 1)
    torch.testing.assert_close(
        logit_adjustment_loss(logits, labels, class_counts=COUNTS, tau=0),
        cross_entropy_loss(logits, labels),
    )
    torch.testing.assert_close(
        logit_adjustment_loss(logits, labels, class_counts=COUNTS),
        balanced_softmax_loss(logits, labels, class_counts=COUNTS),
    )


def test_a_class_without_rows_counts_as_one_row():
    assert log_prior([99, 1, 0]).exp().tolist() == pytest.approx([0.99, 0.01, 0.01])
    assert log_prior([0.75, 0.25, 0]).exp().tolist() == pytest.approx([0.75, 0.25, 0.25])
    loss = LogitAdjustmentLoss([99, 1, 0])
    shares = torch.tensor([0.99, 0.01, 0.01])  # the shift takes off what the loss has added
    assert loss.log_shift().tolist() == pytest.approx((-shares.log()).tolist())


def test_a_class_of_weight_0_is_moved_by_its_prior_and_as_the_others_on_average():
    plain, weighted = LogitAdjustmentLoss(COUNTS), LogitAdjustmentLoss(COUNTS, weight=[1, 4, 0])
    moved = weighted.log_shift() - plain.log_shift()
    assert moved.tolist() == pytest.approx([0.0, math.log(4), math.log(2)])


def test_it_keeps_the_contract():
    check_loss(LogitAdjustmentLoss([90, 10]), n_classes=(2,))
    check_loss(LogitAdjustmentLoss([90, 10, 0], tau=1.5), n_classes=(3,))


def test_by_name_it_takes_the_counts_of_the_train_split():
    loss = as_loss("logit_adjustment:tau=0.5", class_counts=[75, 25])
    assert loss.log_shift().tolist() == pytest.approx([-0.5 * math.log(p) for p in (0.75, 0.25)])
    assert "tau=0.5" in repr(loss)
    with refuses(InputError, "needs the counts of the classes"):
        as_loss("logit_adjustment")


def test_the_prior_is_saved_with_the_loss():
    old, new = LogitAdjustmentLoss([90, 10]), LogitAdjustmentLoss([50, 50])
    new.load_state_dict(old.state_dict())
    assert new.log_shift().tolist() == old.log_shift().tolist()


def test_counts_of_other_classes_are_refused():
    with refuses(InputError, "(4,)", "logits", "got 3"):
        logit_adjustment_loss(*drawn(4, 2), class_counts=COUNTS)


@pytest.mark.parametrize("tau", [-1, float("inf"), "much"])
def test_a_strength_out_of_range_is_refused(tau):
    with refuses(InputError, "tau", "number", "0 to 100"):
        LogitAdjustmentLoss(COUNTS, tau=tau)
