"""Optimisers and learning-rate schedules."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW

from calibrant.training.options import TrainingOptions


def make_optimizer(
    parameters: Iterable[nn.Parameter], options: TrainingOptions
) -> torch.optim.Optimizer:
    """Return the fused optimiser of a run, which updates all tensors in one call."""
    shared: dict[str, Any] = {
        "lr": options.learning_rate,
        "weight_decay": options.weight_decay,
        "fused": True,
    }
    if options.optimizer == "sgd":
        return SGD(parameters, momentum=options.momentum, nesterov=options.nesterov, **shared)
    kind = Adam if options.optimizer == "adam" else AdamW
    return kind(parameters, **shared)


def learning_rate_at(options: TrainingOptions, epochs_done: float, step: float = 0.0) -> float:
    r"""Return the learning rate after a (fractional) number of epochs.

    With $s$ the share of the run done after the warm-up, "cosine" is $(1 + \cos \pi s) / 2$ and
    "linear" is $1 - s$ of the peak rate. It is stateless, so a resumed run needs nothing saved.
    `step` is the length of a step in epochs, so that the first step of the warm-up has a rate
    above 0.

    Examples
    --------
    >>> from calibrant.training import TrainingOptions
    >>> options = TrainingOptions(epochs=10, learning_rate=1.0, schedule="steps", milestones=(5,))
    >>> [learning_rate_at(options, done) for done in (0.0, 4.9, 5.0)]
    [1.0, 1.0, 0.1]
    """
    warmup = options.warmup * options.epochs
    if epochs_done < warmup:
        return options.learning_rate * min((epochs_done + step) / warmup, 1.0)
    share = (epochs_done - warmup) / (options.epochs - warmup)
    factor = 1.0
    if options.schedule == "cosine":
        factor = (1 + math.cos(math.pi * share)) / 2
    elif options.schedule == "linear":
        factor = 1 - share
    elif options.schedule == "steps":
        factor = options.drop ** sum(epochs_done >= milestone for milestone in options.milestones)
    return options.learning_rate * factor


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of all parameter groups."""
    for group in optimizer.param_groups:
        group["lr"] = rate
