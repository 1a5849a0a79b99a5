"""Encoded rows through a network: batch by batch, without gradients, in the order they came in."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from calibrant.inputs import IntArray
from calibrant.models.text_batch import padded

__all__ = ["AT_A_TIME", "array_logits", "device_of", "text_logits"]

AT_A_TIME = 256
"""Rows in a batch on a CPU. More do not go faster there, for the states leave the caches.

Rows of a table always come in batches of exactly this many, the last one filled up: matrix
products of other shapes round in another way, and the logits of a row should not depend on the
rows that it is asked with.
"""

_AT_A_TIME_ON_A_GPU = 4096


def text_logits(model: nn.Module, tokens: IntArray, offsets: IntArray) -> NDArray[np.float32]:
    """Return the logits (n, K) of texts, of which those of like length share a batch.

    The model must be in eval mode. It is called with token ids (b, L) and lengths (b,).

    Parameters
    ----------
    model : the network
    tokens : token ids of all texts one after the other
    offsets : (n + 1,) where each text begins in `tokens`

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
        for places in torch.split(order, _batch_size(device)):
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


def device_of(model: nn.Module) -> torch.device:
    """Return where the weights of a network are."""
    return next((part.device for part in model.parameters()), torch.device("cpu"))


def _batch_size(device: torch.device) -> int:
    return AT_A_TIME if device.type == "cpu" else _AT_A_TIME_ON_A_GPU


def _in_place(logits: Tensor, order: Tensor) -> NDArray[np.float32]:
    out = np.empty(tuple(logits.shape), dtype=np.float32)
    out[order.numpy()] = logits.float().cpu().numpy()
    return out
