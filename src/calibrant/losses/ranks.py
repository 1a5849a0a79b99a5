"""Rows of all processes, where torch.distributed is running."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from calibrant.errors import InputError

__all__ = ["first_process", "gather_made", "gather_rows"]


def gather_rows(rows: Tensor) -> Tensor:
    """Return the rows of all processes, first process first; they may have different numbers.

    Alone, it returns the rows as they are. A process without rows need not know their width.
    """
    if _alone():
        return rows
    own = rows.to(_place(rows))
    world = dist.get_world_size()
    shape = torch.tensor([len(own), *own.shape[1:]], device=own.device)
    shapes = [torch.empty_like(shape) for _ in range(world)]
    dist.all_gather(shapes, shape)
    counts = [int(one[0]) for one in shapes]
    width = [int(size) for size in max(shapes, key=lambda one: int(one[0]))[1:]]
    padded = own.new_zeros(max(counts), *width)
    if len(own):
        padded[: len(own)] = own
    parts = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(parts, padded)
    found = torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])
    return found.to(rows.device)


def gather_made(make: Callable[[], Tensor]) -> Tensor:
    """Let every process make its rows, and gather them; if one cannot, all raise.

    Without this a process that refuses its rows would leave the others waiting for it for ever.
    """
    rows, failure = torch.empty(0), None
    try:
        rows = make()
    except Exception as error:  # told to the other processes first, raised below
        failure = error
    told = gather_rows(torch.tensor([failure is not None]).to(torch.int64))
    if failure is not None:
        raise failure
    if bool(told.any()):
        raise InputError(
            f"the rows of process {int(told.nonzero()[0, 0])} were refused there, so no process "
            "learned from its own: see the message of that process."
        )
    return gather_rows(rows)


def first_process(values: Tensor) -> Tensor:
    """Return the values that the first process holds."""
    if _alone():
        return values
    sent = values.to(_place(values), copy=True)
    dist.broadcast(sent, 0)
    return sent.to(values.device)


def _alone() -> bool:
    return not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1


def _place(values: Tensor) -> torch.device:
    """Return where values have to lie to be sent: NCCL cannot send from the CPU."""
    if values.device.type == "cpu" and "cpu:" not in dist.get_backend_config():
        return torch.device("cuda", torch.cuda.current_device())
    return values.device
