"""What makes a network fast on a device without changing what it learns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.errors import TrainingError
from calibrant.training.options import TrainingOptions

__all__ = [
    "compiled",
    "in_fast_layout",
    "lay_out_as_weights",
    "naming_failed_compilation",
    "tuned_convolutions",
]


def in_fast_layout(model: nn.Module) -> nn.Module:
    """Put the weights of a network for images into the layout that its convolutions like best.

    Channels last: all channels of a pixel stand together in memory. Values and shapes stay.

    Examples
    --------
    >>> model = in_fast_layout(nn.Conv2d(3, 8, 3))
    >>> model.weight.is_contiguous(memory_format=torch.channels_last)
    True
    """
    for weights in model.parameters():
        if weights.ndim == 4:
            weights.data = weights.data.contiguous(memory_format=torch.channels_last)
    return model


def lay_out_as_weights(optimizer: torch.optim.Optimizer) -> None:
    """Put what an optimiser keeps for each weight, read from a file, into that weight's layout.

    A fused optimiser walks through weights and what it keeps for them in the order of the memory:
    in another layout, a momentum would move another weight than its own.

    Examples
    --------
    >>> weight = nn.Parameter(torch.ones(2, 3, 2, 2).to(memory_format=torch.channels_last))
    >>> optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    >>> optimizer.state[weight]["momentum_buffer"] = torch.ones(2, 3, 2, 2)
    >>> lay_out_as_weights(optimizer)
    >>> optimizer.state[weight]["momentum_buffer"].stride() == weight.stride()
    True
    """
    for weight, kept in optimizer.state.items():
        for name, value in kept.items():
            if isinstance(value, Tensor) and value.shape == weight.shape:
                kept[name] = torch.empty_like(weight, dtype=value.dtype).detach().copy_(value)


def compiled(model: nn.Module, options: TrainingOptions, device: torch.device) -> nn.Module:
    """Return the model as `torch.compile` makes it, where that is asked for.

    Batches of images are all of one size, so that on a GPU whole steps are recorded once and
    replayed, which saves the time in which the card waits for Python. Texts are of any length.
    """
    if not options.compile:
        return model
    how: dict[str, Any] = {"dynamic": None}
    if _reads_images(model):
        how = {"dynamic": False}
        # Replayed steps write their gradients where they wrote the last ones: none can be added up.
        if device.type == "cuda" and options.accumulate == 1:
            how["mode"] = "reduce-overhead"
    made: Any = torch.compile(model, **how)
    return made  # type: ignore[no-any-return]


@contextmanager
def naming_failed_compilation() -> Iterator[None]:
    """Say in one sentence that `torch.compile` cannot do it, and what to do instead."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
            raise
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        raise TrainingError(
            f"torch.compile could not compile the network ({reason[:200].rstrip('.:')}): train it "
            "with compile=False, or see to what it lacks."
        ) from error


@contextmanager
def tuned_convolutions(model: nn.Module) -> Iterator[None]:
    """Let cuDNN try which of its ways is fastest for the sizes of a network for images."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = before or _reads_images(model)
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def _reads_images(model: nn.Module) -> bool:
    return any(isinstance(part, nn.Conv2d) for part in model.modules())
