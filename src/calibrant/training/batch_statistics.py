"""Batch norm statistics, taken again for given weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


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
