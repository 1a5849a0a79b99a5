"""What the networks for images share: how they begin, and what they take."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from calibrant.errors import InputError


def convolution(before: int, after: int, size: int, stride: int = 1) -> nn.Conv2d:
    """Make a convolution without offsets, padded so that only its stride shrinks an image.

    Examples
    --------
    >>> import torch
    >>> convolution(3, 8, size=3, stride=2)(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 8, 16, 16])
    """
    return nn.Conv2d(before, after, size, stride=stride, padding=size // 2, bias=False)


def prepare(network: nn.Module) -> None:
    r"""Draw the first weights of convolutions and lay them out with channels last.

    $$ w \sim N(0, 2 / (k^2 c)) $$

    with $k$ the side of a filter and $c$ the channels that go out (He-normal by fan-out). Batch
    norm begins as torch has it, with scale 1 and offset 0, and so do linear layers. With channels
    last a GPU's matrix units take images and weights as they lie.

    References
    ----------
    He et al. (2015), Delving deep into rectifiers.
    """
    for part in network.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
            part.weight.data = part.weight.data.contiguous(memory_format=torch.channels_last)


def check_stem(stem: str, known: Iterable[str]) -> None:
    """Refuse a way to begin that the network does not know."""
    if stem not in known:
        names = " or ".join(repr(name) for name in known)
        raise InputError(f"stem must be {names}, got {stem!r}.")


def check_images(images: Tensor, n_channels: int, *, least: int, lone: int = 0) -> None:
    """Refuse what is not (rows, n_channels, height, width) of floating-point numbers.

    Only shapes are looked at, so nothing waits for a GPU.

    Examples
    --------
    >>> import torch
    >>> check_images(torch.zeros(2, 3, 32, 32), 3, least=8, lone=8)
    """
    if images.ndim != 4 or images.shape[1] != n_channels:
        raise InputError(
            f"images must have shape (rows, {n_channels}, height, width), "
            f"got {tuple(images.shape)}."
        )
    if not images.is_floating_point():
        raise InputError(
            f"images must be floating-point numbers, got {images.dtype}: normalise them first, as "
            "ImageEncoder does."
        )
    rows, _, height, width = images.shape
    if min(height, width) < least:
        raise InputError(
            f"images must have at least {least} x {least} pixels for this network, "
            f"got {height} x {width}: enlarge them, or choose another stem."
        )
    if rows == 1 and max(height, width) <= lone:
        raise InputError(
            "a batch must have at least two images in training where they are as small as "
            f"{height} x {width}, got 1: use a larger batch_size."
        )
