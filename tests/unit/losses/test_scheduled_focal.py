"""Scheduled focal loss: the gamma of each epoch, and that a resumed run keeps it."""

import math

import pytest
import torch
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.losses import ScheduledFocalLoss, as_loss, focal_loss, scheduled_focal_loss
from calibrant.testing import check_loss
from calibrant.testing.loss_cases import drawn


def test_a_coin_flip_by_hand():
    row = torch.zeros(1, 2, dtype=torch.float64), torch.tensor([0])
    for epoch, gamma in ((0, 5), (99, 5), (100, 3), (249, 3), (250, 1), (10_000, 1)):
        found = float(scheduled_focal_loss(*row, epoch=epoch))
        assert found == pytest.approx(math.log(2) / 2**gamma, rel=1e-12)


@pytest.mark.parametrize("epoch", [0, 6, 7, 19, 20, 21])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_is_the_focal_loss_of_the_epochs_gamma(epoch, dtype):
    logits, labels = drawn(4, 0)
    logits = logits.to(dtype)
    gammas, epochs = (2.5, 0.3, -0.7), (7, 20)
    gamma = gammas[0] if epoch < 7 else gammas[1] if epoch < 20 else gammas[2]
    loss = ScheduledFocalLoss(gammas, epochs)
    loss.set_epoch(epoch)
    plain = focal_loss(logits, labels, gamma=gamma)
    by_function = scheduled_focal_loss(logits, labels, epoch=epoch, gammas=gammas, epochs=epochs)
    torch.testing.assert_close(by_function, plain, rtol=0, atol=0)
    torch.testing.assert_close(loss(logits, labels), plain)


def test_one_gamma_needs_no_epochs():
    logits, labels = drawn(3, 1)
    loss = ScheduledFocalLoss(gammas=[2], epochs=[])
    loss.set_epoch(500)
    torch.testing.assert_close(loss(logits, labels), focal_loss(logits, labels, gamma=2))


def test_the_epoch_survives_a_checkpoint():
    logits, labels = drawn(3, 2)
    old, new = ScheduledFocalLoss(), ScheduledFocalLoss()
    old.set_epoch(120)
    assert int(old.state_dict()["epoch"]) == 120
    new.load_state_dict(old.state_dict())
    assert float(new(logits, labels)) == float(old(logits, labels))
    assert float(new(logits, labels)) == pytest.approx(float(focal_loss(logits, labels, gamma=3)))


def test_the_epoch_reaches_it_inside_a_sum():
    logits, labels = drawn(3, 3)
    loss = as_loss("0.5*ce + 0.5*scheduled_focal:gammas=[4,0],epochs=[10]")
    loss.set_epoch(10)
    torch.testing.assert_close(loss(logits, labels), as_loss("ce")(logits, labels))


def test_it_keeps_the_contract():
    check_loss("scheduled_focal")
    check_loss("scheduled_focal:gammas=[0.2,-1],epochs=[2]")


@pytest.mark.parametrize(
    ("gammas", "epochs"), [([5, 3], [1, 2]), ([5, 3, 1], [9, 9]), ([5, 1], [-1]), ([], [])]
)
def test_a_schedule_that_does_not_fit_is_refused(gammas, epochs):
    with refuses(InputError, "gamma more", "epochs"):
        ScheduledFocalLoss(gammas, epochs)


def test_a_gamma_out_of_range_is_refused():
    with refuses(InputError, "gammas", "number", "-5 to 100"):
        ScheduledFocalLoss(gammas=[5, 3, 101])


@pytest.mark.parametrize("epoch", [-1, 1.5, "3", True])
def test_an_epoch_that_is_none_is_refused(epoch):
    with refuses(InputError, "epoch", "whole number"):
        ScheduledFocalLoss().set_epoch(epoch)
    with refuses(InputError, "epoch", "whole number"):
        scheduled_focal_loss(torch.zeros(1, 2), torch.tensor([0]), epoch=epoch)
