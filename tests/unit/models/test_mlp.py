"""The network for tables: its layers, its size, what it can learn and what it refuses."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from tests.sentences import refuses
from torch import nn

from calibrant.errors import InputError
from calibrant.models import MLP


def test_layers_stand_in_the_order_of_the_tutorial():
    kinds = [type(layer).__name__ for layer in MLP(30, 2).layers]
    assert kinds == [
        *("Linear", "BatchNorm1d", "ReLU", "Dropout"),
        *("Linear", "ReLU", "Dropout"),
        "Linear",
    ]
    assert [layer.p for layer in MLP(30, 2).layers if isinstance(layer, nn.Dropout)] == [0.5, 0.25]


def test_number_of_weights_by_hand():
    n = sum(weights.numel() for weights in MLP(30, 2).parameters())
    assert n == (30 * 128 + 128) + 2 * 128 + (128 * 64 + 64) + (64 * 2 + 2)


def test_logits_equal_the_layers_written_out():
    torch.manual_seed(0)
    model = MLP(5, 3, hidden=(4, 3), dropout=(0.5, 0.5)).eval()
    x = torch.randn(6, 5)
    first, norm, _, _, second, _, _, last = model.layers
    norm.running_mean.uniform_(-1, 1)
    norm.running_var.uniform_(0.5, 2)
    h = x @ first.weight.T + first.bias
    h = (h - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias
    h = h.clamp(min=0) @ second.weight.T + second.bias
    expected = h.clamp(min=0) @ last.weight.T + last.bias
    torch.testing.assert_close(model(x), expected)


def test_without_batch_norm_one_row_can_be_trained_on():
    model = MLP(3, 2, batch_norm=False)
    assert not any(isinstance(layer, nn.BatchNorm1d) for layer in model.layers)
    model(torch.zeros(1, 3)).sum().backward()


def test_it_over_fits_64_rows():
    torch.manual_seed(0)
    model = MLP(10, 3, hidden=(64, 32), dropout=(0.0, 0.0))
    features, labels = torch.randn(64, 10), torch.randint(0, 3, (64,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(100):
        optimizer.zero_grad()
        F.cross_entropy(model(features), labels).backward()
        optimizer.step()
    assert (model.eval()(features).argmax(1) == labels).all()


def test_bad_sizes_are_named():
    for arguments, sentence in [
        ({"n_features": 0, "n_classes": 2}, ("n_features", "at least 1", "got 0")),
        ({"n_features": 3, "n_classes": 1}, ("n_classes", "at least 2", "got 1")),
        ({"n_features": 3, "n_classes": 2, "hidden": (8,)}, ("dropout one share",)),
        ({"n_features": 3, "n_classes": 2, "hidden": (), "dropout": ()}, ("at least one width",)),
        ({"n_features": 3, "n_classes": 2, "dropout": (0.5, 1.0)}, ("below 1, got 1.0",)),
        ({"n_features": 3, "n_classes": 2, "hidden": (8, 2.5)}, ("hidden", "got 2.5")),
    ]:
        with refuses(InputError, *sentence):
            MLP(**arguments)


def test_bad_features_are_named():
    model = MLP(3, 2)
    with pytest.raises(InputError, match=r"shape \(rows, 3\), got \(4, 2\)"):
        model(torch.zeros(4, 2))
    with refuses(InputError, "floating-point numbers", "got torch.int64"):
        model(torch.zeros(4, 3, dtype=torch.int64))
    with refuses(InputError, "at least two rows", "training", "batch norm"):
        model(torch.zeros(1, 3))
    assert model.eval()(torch.zeros(1, 3)).shape == (1, 2)
