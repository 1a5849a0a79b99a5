"""The moving average of the weights, and the batch norm statistics taken for it."""

import numpy as np
import pytest
import torch
from torch import nn

from calibrant.training.weight_average import (
    WeightAverage,
    decay_between,
    estimate_statistics,
    trained_norms,
)


def walk(decay, values, dtype=torch.float32):
    """The average of a weight that takes these values, one after each step."""
    model = nn.Linear(1, 1, bias=False).to(dtype)
    average = WeightAverage(model, decay)
    for step, value in enumerate(values, start=1):
        nn.init.constant_(model.weight, value)
        average.update(step)
    return average, model


def test_three_steps_by_hand():
    # (1/2)^5 = 1/32 is kept of the first, then (2/3)^5 = 32/243 of their average, unless d is less.
    average, _ = walk(0.996, [1.0, 2.0, 4.0])
    assert average.weights["weight"].item() == pytest.approx(
        32 / 243 * (1 / 32 * 1 + 31 / 32 * 2) + 211 / 243 * 4
    )
    average, _ = walk(0.01, [1.0, 2.0, 4.0])
    assert average.weights["weight"].item() == pytest.approx(
        0.01 * (0.01 * 1 + 0.99 * 2) + 0.99 * 4
    )
    average, _ = walk(0.0, [1.0, 2.0, 4.0])
    assert average.weights["weight"].item() == 4.0


def test_a_short_run_weights_its_steps_by_the_power_law():
    values = np.random.default_rng(0).normal(size=30)
    steps = np.arange(1, 31)
    share = (steps**5 - (steps - 1) ** 5) / 30**5
    assert share.sum() == pytest.approx(1)
    assert share[:15].sum() == pytest.approx(1 / 32)
    average, _ = walk(0.999, values, torch.float64)
    assert average.weights["weight"].item() == pytest.approx(share @ values)


def test_a_long_run_forgets_exponentially():
    assert decay_between(5000, 5001, 0.99) == 0.99
    assert decay_between(5000, 5008, 0.99) == pytest.approx(0.99**8)
    one = decay_between(5000, 5004, 0.99) * decay_between(5004, 5008, 0.99)
    assert one == pytest.approx(decay_between(5000, 5008, 0.99))  # in two parts or in one


def test_seldom_updates_change_the_average_of_a_slow_walk_little():
    values = np.cumsum(np.random.default_rng(1).normal(size=2000) * 0.01)
    average, _ = walk(0.996, values, torch.float64)
    slow = values[0]
    for step in range(2, 2001):
        slow += (1 - decay_between(step - 1, step, 0.996)) * (values[step - 1] - slow)
    spread = np.abs(values[-250:] - slow).mean()
    assert average.weights["weight"].item() == pytest.approx(slow, abs=0.05 * spread)


def test_weights_of_sixteen_bits_are_averaged_in_thirty_two():
    average, model = walk(0.9, [256.0, 258.0], torch.bfloat16)  # their step is 2 there
    assert average.weights["weight"].dtype == torch.float32
    average.update(3)
    average.copy_to_model()
    assert model.weight.dtype == torch.bfloat16
    assert average.weights["weight"].item() == pytest.approx(257.99, abs=0.02)


def test_frozen_weights_and_whole_numbers_are_left_out():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model[0].bias.requires_grad_(False)
    average = WeightAverage(model, 0.9)
    average.update(1)
    assert set(average.weights) == {"0.weight", "1.weight", "1.bias"}


def test_a_weight_that_two_layers_share_is_averaged_once():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    average = WeightAverage(model, 0.9)
    average.update(1)
    assert set(average.weights) == {"0.weight", "0.bias", "1.bias"}


def test_its_state_takes_another_to_the_same_bits():
    average, _ = walk(0.9, [1.0, 3.0, 2.0])
    other, model = walk(0.9, [5.0])
    other.load(average.state())
    for one in (average, other):
        nn.init.constant_(next(iter(one._trained.values())), 7.0)
        one.update(4)
    assert torch.equal(average.weights["weight"], other.weights["weight"])
    assert other.step == 4
    other.copy_to_model()
    assert torch.equal(model.weight, other.weights["weight"])


def test_channels_last_weights_keep_their_layout_when_loaded():
    model = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    average = WeightAverage(model, 0.9)
    average.update(1)
    saved = {
        "step": 1,
        "weights": {name: value.contiguous() for name, value in average.weights.items()},
    }
    average.load(saved)
    assert average.weights["weight"].is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(average.weights["weight"], saved["weights"]["weight"])


def test_two_batches_by_hand():
    model = nn.BatchNorm1d(1)
    # Means 2 and 9, variances 2 and 12, 2 and 4 rows.
    first, second = [[1.0], [3.0]], [[5.0], [9.0], [13.0], [9.0]]
    estimate_statistics(model, [(torch.tensor(first),), (torch.tensor(second),)])
    assert model.running_mean.item() == pytest.approx((2 * 2 + 4 * 9) / 6)
    assert model.running_var.item() == pytest.approx((2 * 2 + 4 * 32 / 3) / 6)


def test_a_network_with_two_norms_matches_a_slow_reference():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 5),
        nn.BatchNorm1d(5, momentum=0.3),
    )  # fmt: skip
    batches = [torch.randn(size, 2, 6, 6) * size for size in (7, 3, 12)]
    estimate_statistics(model, [(batch,) for batch in batches])
    sizes = np.array([7, 3, 12])
    for place in (1, 5):
        means, variances = [], []
        for batch in batches:
            copy = batch.double()
            for layer in model[:place]:
                if isinstance(layer, nn.modules.batchnorm._BatchNorm):
                    copy = nn.functional.batch_norm(
                        copy, None, None, layer.weight.double(), layer.bias.double(), training=True
                    )
                elif isinstance(layer, nn.Conv2d | nn.Linear):
                    copy = layer.double()(copy)
                    layer.float()
                else:
                    copy = layer(copy)
            values = copy.movedim(1, -1).flatten(0, -2).detach().numpy()
            means.append(values.mean(axis=0))
            variances.append(values.var(axis=0, ddof=1))
        norm = model[place]
        np.testing.assert_allclose(
            norm.running_mean, np.average(means, axis=0, weights=sizes), rtol=1e-4, atol=1e-5
        )
        np.testing.assert_allclose(
            norm.running_var, np.average(variances, axis=0, weights=sizes), rtol=1e-4
        )
    assert (model[1].momentum, model[5].momentum) == (0.1, 0.3)
    assert not model[0].weight.grad


def test_frozen_norms_and_those_without_statistics_are_left_alone():
    model = nn.Sequential(
        nn.BatchNorm1d(2).eval(), nn.BatchNorm1d(2, track_running_stats=False), nn.BatchNorm1d(2)
    )
    assert trained_norms(model) == [model[2]]
    estimate_statistics(model, [(torch.randn(9, 2) + 5,)])
    assert model[0].running_mean.tolist() == [0.0, 0.0]
    assert model[2].running_mean.abs().max() < 1e-4  # of what the second norm centred


def test_every_order_of_the_batches_gives_the_same():
    draw = torch.Generator().manual_seed(0)
    batches = [(torch.randn(size, 4, generator=draw),) for size in (5, 2, 9)]
    one, other = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
    estimate_statistics(one, batches)
    estimate_statistics(other, batches[::-1])
    torch.testing.assert_close(one.running_var, other.running_var)
