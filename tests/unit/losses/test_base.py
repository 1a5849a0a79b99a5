"""What all losses share, where a loss says nothing else."""

import pytest
import torch

from calibrant.errors import InputError
from calibrant.losses import CrossEntropyLoss, Loss, LossSum, RowLoss


def test_a_plain_loss_learns_nothing_and_moves_nothing():
    loss = Loss()
    before = loss.state_dict()
    loss.set_epoch(3)
    loss.update(torch.zeros(2, 2), torch.zeros(2))
    assert loss.state_dict() == before
    assert loss.log_shift() is None
    assert (loss.steered, loss.update_every, loss.name) == (False, None, "")


def test_losses_are_added_and_scaled_into_sums():
    one, two = CrossEntropyLoss(), CrossEntropyLoss()
    for made, factors in ((one + two, (1.0, 1.0)), (3 * one, (3.0,)), (one * 3, (3.0,))):
        assert isinstance(made, LossSum)
        assert made.factors == factors
    assert list((one + two).terms) == [one, two]
    assert sum([one, two]).factors == (1.0, 1.0)


def test_weights_are_kept_in_single_precision_and_move_with_the_module():
    loss = RowLoss(weight=[1, 2])
    assert loss.weight.dtype == torch.float32
    assert loss.double().weight.dtype == torch.float64
    assert loss.state_dict()["weight"].tolist() == [1.0, 2.0]
    assert RowLoss().weight is None


@pytest.mark.parametrize(
    ("option", "value"), [("weight", [-1.0]), ("ignore_index", "x"), ("reduction", "average")]
)
def test_bad_options_are_refused_when_a_loss_is_made(option, value):
    with pytest.raises(InputError, match=f"^{option} must be"):
        RowLoss(**{option: value})
