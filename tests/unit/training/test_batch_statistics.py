"""Batch norm statistics taken again, against sums written out."""

import numpy as np
import pytest
import torch
from torch import nn

from calibrant.training.batch_statistics import estimate_statistics, trained_norms


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
