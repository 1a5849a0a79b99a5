"""Communication between the processes of torch.distributed."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from calibrant.errors import InputError


def gather_rows(rows: Tensor) -> Tensor:
    """Return the rows of all processes in rank order; their numbers may differ.

    A single process gets its rows back. A process without rows need not know their width.
    """
    if _is_single_process():
        return rows
    local = rows.to(_communication_device(rows))
    world = dist.get_world_size()
    shape = torch.tensor([len(local), *local.shape[1:]], device=local.device)
    shapes = [torch.empty_like(shape) for _ in range(world)]
    dist.all_gather(shapes, shape)
    counts = [int(entry[0]) for entry in shapes]
    width = [int(size) for size in max(shapes, key=lambda entry: int(entry[0]))[1:]]
    padded = local.new_zeros(max(counts), *width)
    if len(local):
        padded[: len(local)] = local
    parts = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(parts, padded)
    gathered = torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])
    return gathered.to(rows.device)


def compute_and_gather(make: Callable[[], Tensor]) -> Tensor:
    """Compute the rows of every process and gather them; if one fails, all raise.

    Otherwise the other processes would wait forever for the one that failed.
    """
    rows, failure = torch.empty(0), None
    try:
        rows = make()
    except Exception as error:  # reported to the other processes first, raised below
        failure = error
    failed = gather_rows(torch.tensor([failure is not None]).to(torch.int64))
    if failure is not None:
        raise failure
    if bool(failed.any()):
        raise InputError(
            f"the rows of process {int(failed.nonzero()[0, 0])} were refused, so no process was "
            "updated: see the message of that process."
        )
    return gather_rows(rows)


def broadcast_first(values: Tensor) -> Tensor:
    """Return the values of the first process."""
    if _is_single_process():
        return values
    sent = values.to(_communication_device(values), copy=True)
    dist.broadcast(sent, 0)
    return sent.to(values.device)


def _is_single_process() -> bool:
    return not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1


def _communication_device(values: Tensor) -> torch.device:
    """Return a device that the backend can send from: NCCL cannot send from the CPU."""
    if values.device.type == "cpu" and "cpu:" not in dist.get_backend_config():
        return torch.device("cuda", torch.cuda.current_device())
    return values.device
