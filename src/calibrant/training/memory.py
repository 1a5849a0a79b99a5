"""Device memory: whether a split fits, and out-of-memory errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from calibrant.errors import TrainingError

_SHARE = 0.4  # of the free memory, for the splits; the rest is for the model


def fits(nbytes: int, device: torch.device) -> bool:
    """Whether a split of `nbytes` may stay on the device during a run."""
    if device.type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return nbytes <= _SHARE * free


@contextmanager
def explain_out_of_memory(batch_size: int, accumulate: int = 1) -> Iterator[None]:
    """Turn out-of-memory errors into a `TrainingError` with a remedy."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not _is_memory(error):
            raise
        parts = f" in {accumulate} parts" if accumulate > 1 else ""
        raise TrainingError(
            f"the device ran out of memory with batches of {batch_size} rows{parts}: "
            f"{_remedy(batch_size, accumulate)}; saved checkpoints are kept."
        ) from error


def _remedy(batch_size: int, accumulate: int) -> str:
    if batch_size == 1:
        return "try a smaller model"
    if 2 * accumulate > batch_size:
        return f"try batch_size={batch_size // 2}"
    return (
        f"try accumulate={2 * accumulate}, which takes the same steps in smaller parts, or "
        f"batch_size={batch_size // 2}"
    )


def _is_memory(error: BaseException) -> bool:
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return "can't allocate memory" in str(error) or "CUBLAS_STATUS_ALLOC_FAILED" in str(error)
