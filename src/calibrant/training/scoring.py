"""Score a split with a model, on one or several processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from calibrant.errors import InputError
from calibrant.losses.evaluating import eval_mode
from calibrant.losses.ranks import gather_rows
from calibrant.training.batches import BatchRows


def predict_logits(
    model: nn.Module, rows: BatchRows, *, batch_size: int = 1024
) -> NDArray[np.float32]:
    """Return the (n, K) logits of a split, in the order of its rows.

    The model is put into eval mode temporarily and stays on its device; rows are moved there batch
    by batch.

    Parameters
    ----------
    model : called as `model(*inputs)`
    rows : the split
    batch_size : rows scored at a time

    Examples
    --------
    >>> import torch
    >>> from calibrant.training import ArrayRows, predict_logits
    >>> predict_logits(torch.nn.Identity(), ArrayRows(torch.eye(2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if not len(rows):
        raise InputError("there are no rows to score: the split is empty.")
    device = next((part.device for part in model.parameters()), torch.device("cpu"))
    parts = list(_score_batches(model, rows, batch_size, device, (0, 1)))
    places = torch.cat([positions for positions, _, _ in parts]).cpu()
    logits = torch.cat([scores for _, scores, _ in parts]).float().cpu()
    return np.asarray(torch.empty_like(logits).index_copy_(0, places, logits).numpy())


def score(
    model: nn.Module, rows: BatchRows, batch_size: int, device: torch.device, shard: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Return logits and labels of one process's rows, in any order."""
    parts = list(_score_batches(model, rows, batch_size, device, shard))
    logits = torch.cat([scores for _, scores, _ in parts])
    return logits, torch.cat([labels for _, _, labels in parts]).to(device)


def gather_arrays(logits: Tensor, labels: Tensor) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the logits and labels of all processes as arrays on the host."""
    everywhere = gather_rows(logits.float()), gather_rows(labels)
    return everywhere[0].cpu().numpy(), everywhere[1].cpu().numpy()


def share_buffers(model: nn.Module, world: int) -> None:
    """Broadcast the buffers of the first process: batch norm statistics depend on the rows."""
    if world > 1:
        for buffer in model.buffers():
            torch.distributed.broadcast(buffer, 0)


def weight_type(model: nn.Module) -> torch.dtype | None:
    """Return the dtype of a model's weights; None without floating-point weights."""
    return next((part.dtype for part in model.parameters() if part.is_floating_point()), None)


def move_input(part: Tensor, device: torch.device, kind: torch.dtype | None) -> Tensor:
    """Move a tensor to the model's device; floats also get the dtype of its weights."""
    if kind is None or not part.is_floating_point():
        return part.to(device, non_blocking=True)
    return part.to(device, kind, non_blocking=True)


def _score_batches(
    model: nn.Module, rows: BatchRows, batch_size: int, device: torch.device, shard: tuple[int, int]
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield positions, logits and labels batch by batch, in eval mode and without gradients."""
    kind = weight_type(model)
    with eval_mode(model), torch.no_grad():
        for places, inputs, labels in rows.batches(batch_size, shard=shard):
            yield places, model(*(move_input(part, device, kind) for part in inputs)), labels
