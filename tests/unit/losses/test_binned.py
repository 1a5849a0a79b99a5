"""What a steered loss keeps: its state through files, devices, precisions and errors."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from tests.sentences import refuses
from tests.unit.losses.steer_worlds import losses, taught, world
from torch import nn

from calibrant.errors import InputError
from calibrant.losses import AdaFocalLoss, CalFocalLoss, CrossEntropyLoss

KINDS = sorted(losses())


def same(one, other):
    """Whether two states are equal to the bit, NaN for NaN."""
    return one.keys() == other.keys() and all(
        value.dtype == other[name].dtype
        and np.array_equal(value.numpy(), other[name].numpy(), equal_nan=True)
        for name, value in one.items()
    )


def frozen(loss):
    return {name: value.clone() for name, value in loss.state_dict().items()}


def through_pickle(loss):
    return pickle.loads(pickle.dumps(loss))


def through_torch_file(loss):
    file = io.BytesIO()
    torch.save(loss.state_dict(), file)
    file.seek(0)
    other = losses()[_kind(loss)]
    other.load_state_dict(torch.load(file, weights_only=True))
    return other


def through_safetensors(loss):
    other = losses()[_kind(loss)]
    other.load_state_dict(load(save(frozen(loss))))
    return other


def _kind(loss):
    return loss.mode if isinstance(loss, AdaFocalLoss) else loss.per


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "travel", [copy.deepcopy, through_pickle, through_torch_file, through_safetensors]
)
def test_a_loss_goes_on_identically_after_a_journey(kind, travel):
    loss = losses()[kind]
    taught(loss)
    other = travel(loss)
    before = frozen(other)
    assert same(before, frozen(loss))
    taught(loss)
    assert same(frozen(other), before)  # it shares nothing with the one that stayed
    taught(other)
    assert same(frozen(other), frozen(loss))
    assert len(other.history) == 6
    logits, labels = world(200, seed=9)
    assert torch.equal(loss(logits, labels), other(logits, labels))


def test_a_state_for_another_number_of_bins_is_refused():
    loss = AdaFocalLoss(n_bins=7)
    with refuses(InputError, "table", "34 columns", "7 bins", "got torch.Size"):
        loss.set_extra_state(torch.zeros(3, 5))
    with refuses(InputError, "34 columns", "7 bins", "got torch.Size([0, 39])"):
        loss.load_state_dict(AdaFocalLoss(n_bins=8).state_dict())


@pytest.mark.parametrize("kind", KINDS)
def test_another_precision_does_not_round_what_was_learned(kind):
    loss = losses()[kind]
    taught(loss)
    before = frozen(loss)
    model = nn.ModuleDict({"net": nn.Linear(2, 2), "loss": loss})
    for cast in (model.half, model.bfloat16, model.float, lambda: model.to(torch.float16)):
        cast()
        assert same(frozen(loss), before)
    assert model["net"].weight.dtype == torch.float16
    logits = world(50, dtype=torch.float16)[0].requires_grad_()
    loss(logits, world(50)[1]).backward()
    assert logits.grad.isfinite().all()


def test_a_move_that_fails_leaves_the_loss_as_it_was():
    loss = AdaFocalLoss(n_bins=3)
    before = frozen(loss)

    def cannot(_):
        raise RuntimeError("no such device")

    with pytest.raises(RuntimeError, match="no such device"):
        loss._apply(cannot)
    assert same(frozen(loss), before)


def test_a_move_takes_the_state_along():
    loss = AdaFocalLoss(n_bins=3, weight=[1.0, 2.0])
    loss.to("meta")
    assert {value.device.type for value in loss.buffers()} == {"meta"}
    assert loss.gammas.dtype == torch.float64


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (torch.empty(0, 3), torch.empty(0, dtype=torch.long), ("steer split", "empty")),
        (torch.zeros(2, 3), torch.tensor([-100, -100]), ("steer split", "empty")),
        (torch.full((2, 3), torch.nan), torch.tensor([0, 1]), ("2 of 2", "rows", "NaN")),
        (torch.zeros(2, 3), torch.tensor([0, 3]), ("labels must lie in 0..2",)),
    ],
)
def test_an_update_that_is_refused_changes_nothing(kind, logits, labels, message):
    loss = losses()[kind]
    taught(loss)
    before = frozen(loss)
    with refuses(InputError, *message):
        loss.update(logits, labels)
    assert same(frozen(loss), before)


def test_a_class_that_is_absent_from_the_steer_split_does_no_harm():
    logits, labels = world(600, 4, sharpness=2.0)
    kept = labels != 3
    loss = AdaFocalLoss()
    loss.update(logits[kept], labels[kept])
    assert loss.gammas.isfinite().all()
    assert loss.history.count[-1].sum() == kept.sum()


def test_arrays_teach_what_tensors_do():
    logits, labels = world(600, sharpness=2.0, dtype=torch.float32)
    one, other = AdaFocalLoss(), AdaFocalLoss()
    one.update(logits, labels)
    other.update(logits.numpy(), labels.numpy())
    assert same(frozen(one), frozen(other))


def test_a_sum_steers_its_terms():
    loss = 0.5 * AdaFocalLoss(update_every=10) + 0.5 * CrossEntropyLoss()
    loss.update(*world(600, sharpness=3.0))
    assert loss.steered
    assert loss.update_every == 10
    assert loss.terms[0].gammas.max() > 1
    saved = 0.5 * AdaFocalLoss() + 0.5 * CrossEntropyLoss()
    saved.load_state_dict(loss.state_dict())
    assert len(saved.terms[0].history) == 1


# --- scoring for loops of one's own ---


def batches_of(n=600, size=64):
    logits, labels = world(n, 4, sharpness=2.0, dtype=torch.float32)
    return logits, labels, list(zip(logits.split(size), labels.split(size), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_update_with_a_model_equals_an_update_with_its_logits(kind):
    logits, labels, batches = batches_of()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    one, other = losses()[kind], losses()[kind]
    with torch.no_grad():
        one.update(model.eval()(logits), labels)
    model.train()
    before = copy.deepcopy(model.state_dict())
    other.update_with(model, batches)
    assert np.allclose(one._table.numpy(), other._table.numpy(), atol=1e-5, equal_nan=True)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert model.training


def test_update_with_takes_several_inputs_and_batches_that_say_more():
    logits, labels, batches = batches_of()

    class Difference(nn.Module):
        def forward(self, one, other):
            return one - other

    expected, pairs, named = AdaFocalLoss(), AdaFocalLoss(), AdaFocalLoss()
    expected.update(logits, labels)
    pairs.update_with(Difference(), [((z, torch.zeros_like(z)), y) for z, y in batches])
    named.update_with(Difference(), [(0, [z, torch.zeros_like(z)], y) for z, y in batches])
    assert same(frozen(pairs), frozen(expected))
    assert same(frozen(named), frozen(expected))


def test_update_with_gives_back_the_modes_even_when_the_model_fails():
    class Broken(nn.Module):
        def forward(self, x):
            raise RuntimeError("broken")

    model = nn.Sequential(nn.BatchNorm1d(4).eval(), Broken())
    loss = AdaFocalLoss()
    with pytest.raises(RuntimeError, match="broken"):
        loss.update_with(model, batches_of()[2])
    assert [part.training for part in model.modules()] == [True, False, True]
    assert len(loss.history) == 0


def test_update_with_nothing_to_score_is_refused():
    with refuses(InputError, "steer split", "empty"):
        CalFocalLoss().update_with(nn.Linear(2, 2), [])


def test_example_of_binnedloss_update_with():
    import torch

    from calibrant.losses import AdaFocalLoss

    loss = AdaFocalLoss()
    loss.update_with(torch.nn.Identity(), [(torch.randn(64, 3), torch.zeros(64).long())])
    assert len(loss.history) == 1
