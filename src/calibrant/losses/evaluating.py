"""Eval mode for a moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["evaluating"]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[nn.Module]:
    """Put a model into eval mode, and give every part of it back its own mode afterwards.

    `model.train()` would not do: a batch norm that was frozen in eval mode must stay so.

    Examples
    --------
    >>> from torch import nn
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2).eval())
    >>> with evaluating(model):
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
