"""Balanced softmax: by hand, against torch, and what its plain logits mean."""

import math

import pytest
import torch
from tests.sentences import refuses
from torch.nn.functional import cross_entropy

from calibrant.errors import InputError
from calibrant.losses import (
    BalancedSoftmaxLoss,
    as_loss,
    balanced_softmax_loss,
    cross_entropy_loss,
)
from calibrant.testing import check_loss
from calibrant.testing.loss_cases import drawn


def test_a_row_by_hand():
    logits = torch.tensor([[1.0, 3.0]], dtype=torch.float64).log()
    found = balanced_softmax_loss(logits, torch.tensor([0]), class_counts=[90, 10])
    assert float(found) == pytest.approx(-math.log(90 / (90 + 30)), rel=1e-12)


def test_it_is_torchs_cross_entropy_of_logits_plus_log_counts():
    logits, labels = drawn(4, 0)
    counts = torch.tensor([500, 120, 30, 7])
    theirs = cross_entropy(logits + counts.double().log(), labels)
    found = balanced_softmax_loss(logits, labels, class_counts=counts)
    torch.testing.assert_close(found, theirs, rtol=1e-12, atol=0)
    torch.testing.assert_close(BalancedSoftmaxLoss(counts)(logits, labels), theirs)


def test_only_ratios_of_counts_matter():
    logits, labels = drawn(3, 1)
    one, ten = ([5, 3, 2], [50, 30, 20])
    torch.testing.assert_close(
        balanced_softmax_loss(logits, labels, class_counts=one),
        balanced_softmax_loss(logits, labels, class_counts=ten),
        rtol=1e-13,
        atol=0,
    )


def test_equal_counts_are_cross_entropy():
    logits, labels = drawn(3, 2)
    found = balanced_softmax_loss(logits, labels, class_counts=[7, 7, 7])
    torch.testing.assert_close(found, cross_entropy_loss(logits, labels), rtol=1e-13, atol=0)


def test_a_model_that_knows_only_the_prior_has_equal_logits():
    counts = [60, 30, 10]
    labels = torch.repeat_interleave(torch.arange(3), torch.tensor(counts))
    logits = torch.zeros(100, 3, dtype=torch.float64, requires_grad=True)
    balanced_softmax_loss(logits, labels, class_counts=counts).backward()
    assert float(logits.grad.sum(0).abs().max()) < 1e-15
    shift = BalancedSoftmaxLoss(counts).log_shift()
    posterior = (logits - shift).softmax(-1)[0]
    assert posterior.tolist() == pytest.approx([0.6, 0.3, 0.1], rel=1e-6)


def test_it_keeps_the_contract():
    check_loss(BalancedSoftmaxLoss([90, 10]), n_classes=(2,))
    check_loss(BalancedSoftmaxLoss([90, 10, 0]), n_classes=(3,))


def test_by_name_it_takes_the_counts_of_the_train_split():
    loss = as_loss("balanced_softmax", class_counts=[75, 25])
    assert isinstance(loss, BalancedSoftmaxLoss)
    assert loss.name == "balanced_softmax"
    with refuses(InputError, "needs the counts of the classes"):
        as_loss("balanced_softmax")


def test_counts_that_are_none_are_refused():
    with refuses(InputError, "class_counts", "rows"):
        BalancedSoftmaxLoss([0, 0])
