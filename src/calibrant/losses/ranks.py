"""Rows of all processes, where torch.distributed is running."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["gather_rows"]


def gather_rows(rows: Tensor) -> Tensor:
    """Return the rows of all processes, first process first; they may have different numbers.

    Alone, it returns the rows as they are.
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return rows
    world = dist.get_world_size()
    shape = torch.tensor([len(rows), *rows.shape[1:]], device=rows.device)
    shapes = [torch.empty_like(shape) for _ in range(world)]
    dist.all_gather(shapes, shape)
    counts = [int(one[0]) for one in shapes]
    width = [int(size) for size in max(shapes, key=lambda one: int(one[0]))[1:]]
    padded = rows.new_zeros(max(counts), *width)
    if len(rows):
        padded[: len(rows)] = rows
    parts = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(parts, padded)
    return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])
