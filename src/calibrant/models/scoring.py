"""Encoded rows through a network: batch by batch, without gradients, in the order they came in."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from calibrant.data.encoders.image_encoder import scale_and_offset
from calibrant.inputs import FloatArray, IntArray
from calibrant.models.text_batch import padded

AT_A_TIME = 256
"""Rows in a batch on a CPU. More do not go faster there, for the states leave the caches.

Rows of a table always come in batches of exactly this many, the last one filled up: matrix
products of other shapes round in another way, and the logits of a row should not depend on the
rows that it is asked with.
"""

_AT_A_TIME_ON_A_GPU = 4096

_TOKENS = {"cpu": 2**12, "cuda": 2**17}
"""Tokens of a batch of a transformer, those that fill up short texts included. With twice as many
two cores took 15 to 40 % longer for each token of MiniLM."""

_PIXELS = {"cpu": 2**16, "cuda": 2**20}
"""Pixels of all images of a batch: 64 and 1,024 images of 32 x 32. Of each pixel a network may keep
a few hundred numbers, so this bounds its memory, whatever the size of the images."""


def text_logits(
    model: nn.Module, tokens: IntArray, offsets: IntArray, *, deep: bool = False
) -> NDArray[np.float32]:
    """Return the logits (n, K) of texts, of which those of like length share a batch.

    The model must be in eval mode. It is called with token ids (b, L) and lengths (b,).

    Examples
    --------
    >>> from calibrant.models import BiLSTM
    >>> model = BiLSTM(50, 3, embedding=8, hidden=4).eval()
    >>> text_logits(model, np.array([7, 8, 9, 4]), np.array([0, 3, 4])).shape
    (2, 3)
    """
    device = device_of(model)
    bounds = torch.from_numpy(offsets)
    starts, lengths = bounds[:-1], bounds.diff()
    ids = torch.from_numpy(tokens).to(device)
    order = lengths.argsort(stable=True)
    parts = []
    with torch.inference_mode():
        for places in torch.split(order, _batch_sizes(lengths[order], device, deep=deep)):
            own = lengths[places]
            begin, count = torch.stack((starts[places], own)).to(device, non_blocking=True)
            width = max(int(own[-1]), 1)  # sorted: the last is the longest
            parts.append(model(padded(ids, begin, count, width), own))
    return _in_place(torch.cat(parts), order)


def array_logits(model: nn.Module, features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the logits (n, K) of rows of numbers. The model must be in eval mode.

    Examples
    --------
    >>> from calibrant.models import MLP
    >>> array_logits(MLP(3, 2).eval(), np.zeros((5, 3), dtype=np.float32)).shape
    (5, 2)
    """
    device = device_of(model)
    whole = np.pad(features, ((0, -len(features) % AT_A_TIME), (0, 0)))
    with torch.inference_mode():
        batches = torch.split(torch.from_numpy(whole).to(device), AT_A_TIME)
        logits = torch.cat([model(batch) for batch in batches])
    return np.asarray(logits[: len(features)].float().cpu().numpy())


def image_logits(
    model: nn.Module, images: NDArray[np.uint8], *, mean: FloatArray, std: FloatArray
) -> NDArray[np.float32]:
    """Return the logits (n, K) of images, which become numbers a batch at a time.

    The model must be in eval mode. It is called with normalised images (b, C, H, W), see
    `ImageEncoder`. The images go to it as bytes, a quarter of what they are as numbers.

    Examples
    --------
    >>> from calibrant.models import WideResNet
    >>> model = WideResNet(1, 3, widen=1, blocks=1).eval()
    >>> images = np.zeros((5, 8, 8, 1), dtype=np.uint8)
    >>> image_logits(model, images, mean=np.array([0.5]), std=np.array([0.25])).shape
    (5, 3)
    """
    device = device_of(model)
    scale, offset = (torch.from_numpy(part).to(device) for part in scale_and_offset(mean, std))
    step = images_at_a_time(device.type, *images.shape[1:3])
    parts = []
    with torch.inference_mode():
        for start in range(0, len(images), step):
            batch = torch.from_numpy(np.array(images[start : start + step])).to(device)
            # Channels stay last in memory, as they came.
            parts.append(model(batch.mul(scale).add_(offset).permute(0, 3, 1, 2)))
        return np.asarray(torch.cat(parts).float().cpu().numpy())


def device_of(model: nn.Module) -> torch.device:
    """Return where the weights of a network are."""
    return next((part.device for part in model.parameters()), torch.device("cpu"))


def _batch_size(device: torch.device) -> int:
    return AT_A_TIME if device.type == "cpu" else _AT_A_TIME_ON_A_GPU


def _batch_sizes(lengths: Tensor, device: torch.device, *, deep: bool) -> int | list[int]:
    """Return how many texts share each batch; they are sorted by length."""
    most = _batch_size(device)
    if not deep:
        return most
    tokens = _TOKENS.get(device.type, _TOKENS["cpu"])
    sizes, start = [], 0
    while start < len(lengths):
        own = lengths[start : start + most].clamp(min=1)
        filled = own * torch.arange(1, len(own) + 1)  # with the longest last, it only grows
        sizes.append(max(int((filled <= tokens).sum()), 1))
        start += sizes[-1]
    return sizes


def lay_out(model: nn.Module) -> None:
    """Convert filters to the channels-last memory layout, like images.

    Trained and loaded networks then have the same layout, and so the same rounding.
    """
    for part in model.parameters():
        if part.ndim == 4:
            # Copied: of a filter of one pixel or channel, torch takes any layout for the one asked.
            copied = torch.empty_like(part.data, memory_format=torch.channels_last)
            part.data = copied.copy_(part.data)


def images_at_a_time(device_type: str, height: int, width: int) -> int:
    """Return how many images of a size share a batch.

    Examples
    --------
    >>> images_at_a_time("cpu", 32, 32)
    64
    """
    return max(_PIXELS.get(device_type, _PIXELS["cpu"]) // (height * width), 1)


def _in_place(logits: Tensor, order: Tensor) -> NDArray[np.float32]:
    out = np.empty(tuple(logits.shape), dtype=np.float32)
    out[order.numpy()] = logits.float().cpu().numpy()
    return out
