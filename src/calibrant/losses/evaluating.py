"""Context manager for eval mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[nn.Module]:
    """Put a model into eval mode, and restore the mode of each of its modules afterwards.

    `model.train()` is not enough: a batch norm frozen in eval mode must stay frozen.

    Examples
    --------
    >>> from torch import nn
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2).eval())
    >>> with eval_mode(model):
    ...     model.training
    False
    >>> model.training, model[1].training
    (True, False)
    """
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    try:
        yield model
    finally:
        for part, mode in modes:
            part.training = mode
