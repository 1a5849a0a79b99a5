"""Exponential moving average of the weights of a run, and batch norm statistics for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

_POWER = 5  # how fast a short run forgets its first weights
_EVERY = 8  # steps between two updates, once a run is no longer short
_SHORT = 128  # steps


def decay_between(before: int, now: int, decay: float) -> float:
    r"""Return the share of the average that is kept from step `before` to step `now`.

    $$
    \lambda = \min\left(d^{\,t - s},\; (s / t)^5\right)
    $$

    with $s$ and $t$ the two steps, counted from 1, and $d$ the decay per step. By the second term
    alone the weights of step $u$ of $T$ count $(u^5 - (u - 1)^5) / T^5$: the first half of a run
    counts 1/32, whatever the length of the run. It is the smaller one up to about step
    $5 / (1 - d)$; from then on the average reaches back a fixed number of steps, $1 / (1 - d)$.

    References
    ----------
    Polyak and Juditsky (1992), Acceleration of stochastic approximation by averaging; Karras et al.
    (2024), Analyzing and improving the training dynamics of diffusion models, section 3.
    """
    return min(decay ** (now - before), (before / now) ** _POWER)


class WeightAverage:
    """The moving average of a model's trainable weights.

    It is updated after each of the first 128 steps and then after every eighth, in which the
    weights change little, so that it takes no noticeable time. Weights of 16 bits are averaged in
    32 bits: their own steps would be too coarse. It draws no random numbers.

    Parameters
    ----------
    model : the model that is trained
    decay : share of the average that is kept per step, in [0, 1); see `decay_between`
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.step = 0
        self._trained = {
            name: weight
            for name, weight in model.named_parameters()
            if weight.requires_grad and weight.is_floating_point()
        }
        self.weights: dict[str, Tensor] = {}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Include the weights after a step, counted from 1."""
        if step > _SHORT and step % _EVERY:
            return
        if not self.weights:
            self.weights = {name: _wide_copy(weight) for name, weight in self._trained.items()}
        averages = list(self.weights.values())
        current = [
            weight.to(average.dtype)
            for weight, average in zip(self._trained.values(), averages, strict=True)
        ]
        torch._foreach_lerp_(averages, current, 1.0 - decay_between(self.step, step, self.decay))
        self.step = step

    @torch.no_grad()
    def copy_to_model(self) -> None:
        """Replace the trainable weights of the model by their average."""
        for name, average in self.weights.items():
            self._trained[name].copy_(average)

    def state(self) -> dict[str, Any]:
        """Return the state for a resumed run."""
        return {"step": self.step, "weights": self.weights}

    @torch.no_grad()
    def load(self, state: dict[str, Any]) -> None:
        """Restore `state`, in the memory layout of the weights."""
        self.step = state["step"]
        self.weights = {
            name: _wide_copy(self._trained[name]).copy_(saved)
            for name, saved in state["weights"].items()
        }


def _wide_copy(weight: Tensor) -> Tensor:
    """Copy a weight in at least 32 bits."""
    wide = weight.dtype if weight.dtype == torch.float64 else torch.float32
    return weight.detach().to(wide, copy=True)


def trained_norms(model: nn.Module) -> list[_BatchNorm]:
    """Return the batch norms in train mode that keep running statistics."""
    return [
        part
        for part in model.modules()
        if isinstance(part, _BatchNorm) and part.training and part.running_mean is not None
    ]


@torch.no_grad()
def estimate_statistics(model: nn.Module, batches: Iterable[tuple[Tensor, ...]]) -> None:
    r"""Replace the running statistics of the batch norms in train mode by those of these batches.

    $$
    \mu = \frac{\sum_b n_b \mu_b}{\sum_b n_b}, \qquad
    \sigma^2 = \frac{\sum_b n_b s_b^2}{\sum_b n_b}
    $$

    with $n_b$ the rows of batch $b$, and $\mu_b$ and $s_b^2$ the mean and the unbiased variance of
    its activations. They are not exponential averages: every row counts the same.

    The model is called in the mode it is in, so that dropout acts as it did in training.

    References
    ----------
    Izmailov et al. (2018), Averaging weights leads to wider optima and better generalization,
    section 3.1.
    """
    norms = trained_norms(model)
    seen = 0
    with _own_momentum(norms):
        for norm in norms:
            norm.reset_running_stats()
        for inputs in batches:
            seen += len(inputs[0])
            for norm in norms:  # a running mean over rows
                norm.momentum = len(inputs[0]) / seen
            model(*inputs)


@contextmanager
def _own_momentum(norms: list[_BatchNorm]) -> Iterator[None]:
    before = [norm.momentum for norm in norms]
    try:
        yield
    finally:
        for norm, momentum in zip(norms, before, strict=True):
            norm.momentum = momentum
