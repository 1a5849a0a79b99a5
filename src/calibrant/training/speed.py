"""Memory layouts, compilation and cuDNN tuning of networks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.errors import TrainingError
from calibrant.training.options import TrainingOptions


def use_channels_last(model: nn.Module) -> nn.Module:
    """Convert the weights of an image network to the channels-last memory layout.

    Values and shapes are unchanged; convolutions are faster.

    Examples
    --------
    >>> model = use_channels_last(nn.Conv2d(3, 8, 3))
    >>> model.weight.is_contiguous(memory_format=torch.channels_last)
    True
    """
    for weights in model.parameters():
        if weights.ndim == 4:
            weights.data = weights.data.contiguous(memory_format=torch.channels_last)
    return model


def match_weight_layout(optimizer: torch.optim.Optimizer) -> None:
    """Convert the loaded state of an optimiser to the memory layout of its weights.

    A fused optimiser reads weights and state in memory order: with different layouts, a momentum
    would be applied to the wrong weight.

    Examples
    --------
    >>> weight = nn.Parameter(torch.ones(2, 3, 2, 2).to(memory_format=torch.channels_last))
    >>> optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    >>> optimizer.state[weight]["momentum_buffer"] = torch.ones(2, 3, 2, 2)
    >>> match_weight_layout(optimizer)
    >>> optimizer.state[weight]["momentum_buffer"].stride() == weight.stride()
    True
    """
    for weight, state in optimizer.state.items():
        for name, value in state.items():
            if isinstance(value, Tensor) and value.shape == weight.shape:
                state[name] = torch.empty_like(weight, dtype=value.dtype).detach().copy_(value)


def compile_model(model: nn.Module, options: TrainingOptions, device: torch.device) -> nn.Module:
    """Return the model, compiled by `torch.compile` if `options.compile`.

    Image batches have one shape, so on a GPU whole steps are recorded once and replayed, without
    waiting for Python. Texts have any length.
    """
    if not options.compile:
        return model
    how: dict[str, Any] = {"dynamic": None}
    if _reads_images(model):
        how = {"dynamic": False}
        # Replayed steps overwrite the last gradients, so they cannot be accumulated.
        if device.type == "cuda" and options.accumulate == 1:
            how["mode"] = "reduce-overhead"
    optimised: Any = torch.compile(model, **how)
    return optimised  # type: ignore[no-any-return]


@contextmanager
def explain_failed_compilation() -> Iterator[None]:
    """Turn errors of `torch.compile` into a `TrainingError` with a remedy."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
            raise
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        raise TrainingError(
            f"torch.compile could not compile the network ({reason[:200].rstrip('.:')}): fix the "
            "cause, or train with compile=False."
        ) from error


@contextmanager
def tuned_convolutions(model: nn.Module) -> Iterator[None]:
    """Let cuDNN benchmark its algorithms for image networks."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = before or _reads_images(model)
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def _reads_images(model: nn.Module) -> bool:
    return any(isinstance(part, nn.Conv2d) for part in model.modules())
