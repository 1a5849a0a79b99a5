"""Small runs that the tests of training share."""

from __future__ import annotations

import torch
from torch import nn

from calibrant.training import ArrayRows, TrainingOptions


def blobs(n: int, seed: int = 0, k: int = 3, noise: float = 1.0) -> ArrayRows:
    """BatchRows around k corners, far enough apart to be learned and near enough to be doubted."""
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, k, (n,), generator=draw)
    features = torch.eye(k)[labels] * 2 + noise * torch.randn(n, k, generator=draw)
    return ArrayRows(features, labels)


def net(k: int = 3, seed: int = 0, dropout: float = 0.3) -> nn.Module:
    """A small network with everything that makes resuming hard: batch norm and dropout."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(k, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, k)
    )


def options(**changes) -> TrainingOptions:
    return TrainingOptions(
        **{"epochs": 5, "batch_size": 32, "learning_rate": 0.01, "device": "cpu", **changes}
    )


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[k], theirs[k]) for k in ours)
