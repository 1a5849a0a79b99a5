"""Inverse focal loss: its formula, its minimisers, and where it stops being sane."""

import math
import warnings

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from calibrant.errors import InputError
from calibrant.losses import InverseFocalLoss, as_loss, focal_loss, inverse_focal_loss
from calibrant.testing import check_loss
from calibrant.testing.loss_cases import drawn


def expected_loss(q, eta, gamma):
    """Loss of answering q where the first of two classes has the probability eta."""
    logits = torch.tensor([[q, 1 - q]], dtype=torch.float64).log()
    shares = torch.tensor([[eta, 1 - eta]], dtype=torch.float64)
    return float(inverse_focal_loss(logits, shares, gamma=gamma))


def test_a_row_by_hand():
    logits = torch.tensor([[0.8, 0.2]], dtype=torch.float64).log()
    found = inverse_focal_loss(logits, torch.tensor([0]), gamma=2)
    assert float(found) == pytest.approx(-(1.8**2) * math.log(0.8), rel=1e-12)


@pytest.mark.parametrize("gamma", [0.0, 0.2, 1.0, 1.5])
def test_it_is_its_formula(gamma):
    logits, labels = drawn(5, 0)
    p = np.exp(logits.numpy())
    p = (p / p.sum(1, keepdims=True))[np.arange(len(p)), labels.numpy()]
    found = InverseFocalLoss(gamma, reduction="none")(logits, labels)
    np.testing.assert_allclose(found.numpy(), -((1 + p) ** gamma) * np.log(p), rtol=1e-12)


def test_it_is_focal_loss_with_the_other_sign():
    logits, labels = drawn(3, 1)
    found = inverse_focal_loss(logits, labels, gamma=1.2, weight=[1.0, 2.0, 3.0])
    theirs = focal_loss(logits, labels, gamma=-1.2, weight=[1.0, 2.0, 3.0])
    assert float(found) == float(theirs)


@pytest.mark.parametrize(
    ("eta", "gamma", "answer"),
    [
        (0.6, 0.5, 0.633),
        (0.6, 1.0, 0.698),
        (0.6, 2.0, 0.871),
        (0.8, 0.5, 0.848),
        (0.8, 1.0, 0.892),
        (0.8, 2.0, 0.948),
    ],
)
def test_the_model_it_asks_for_is_surer_than_the_data(eta, gamma, answer):
    found = minimize_scalar(expected_loss, bounds=(0.5, 0.999), args=(eta, gamma), method="bounded")
    assert found.x == pytest.approx(answer, abs=6e-4)


@pytest.mark.parametrize(("gamma", "sane"), [(1.6, True), (1.63, False)])
def test_a_coin_flip_stays_one_up_to_the_limit_that_is_warned_of(gamma, sane):
    middle = expected_loss(0.5, 0.5, gamma)
    assert (expected_loss(0.53, 0.5, gamma) > middle) is sane


@pytest.mark.parametrize(("gamma", "pulls"), [(3.5, True), (3.7, False)])
def test_beyond_three_and_a_half_a_row_is_pushed_from_its_label(gamma, pulls):
    logits = torch.tensor([[0.28, 0.72]], dtype=torch.float64).log().requires_grad_()
    inverse_focal_loss(logits, torch.tensor([0]), gamma=gamma).backward()
    assert (float(logits.grad[0, 0]) < 0) is pulls


def test_above_the_limit_it_warns():
    with pytest.warns(UserWarning, match="gamma 2.*coin flip"):
        InverseFocalLoss(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        InverseFocalLoss(1.615)


@pytest.mark.filterwarnings("ignore:inverse focal loss")
@pytest.mark.parametrize("gamma", [0, 0.2, 1, 5])
def test_it_keeps_the_contract(gamma):
    check_loss(f"inverse_focal:gamma={gamma}")


def test_gamma_comes_from_text():
    assert "gamma=0.5" in repr(as_loss("inverse_focal:gamma=0.5"))


@pytest.mark.parametrize(
    ("gamma", "rule"), [(-1, "from 0 to 100"), (5.1, "at most 5"), (float("nan"), "from 0 to 100")]
)
def test_a_gamma_out_of_range_is_refused(gamma, rule):
    with pytest.raises(InputError, match=rule):
        InverseFocalLoss(gamma)
    with pytest.raises(InputError, match=rule):
        inverse_focal_loss(torch.zeros(1, 2), torch.tensor([0]), gamma=gamma)
