"""What the benchmarks of deep networks share: whether a GPU is here, and real rows for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from reproductions.data_sets import find
from reproductions.image_strips import read_strips

__all__ = ["cifar10", "gpu_name", "newsgroups", "random_images"]


def gpu_name() -> str | None:
    """Return what the GPU is called, or None where torch sees none."""
    import torch

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else None


def random_images(n: int, k: int = 10, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Draw images of 32x32 bytes that mean nothing, and their classes."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
    return images, rng.integers(0, k, n)


def cifar10(which: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read the "train" (50,000) or "test" (10,000) images of CIFAR-10 and their classes."""
    names = [f"train_{i}" for i in range(5)] if which == "train" else ["test"]
    files = find("cifar10", *(f"cifar10_{name}.npz" for name in names))
    images, labels = zip(*(read_strips(file) for file in files), strict=True)
    return np.concatenate(images), np.concatenate(labels).astype(np.int64)


def newsgroups() -> dict[str, NDArray[Any]]:
    """Read the posts of 20 Newsgroups: `text` with header, `label`, and `split` by date."""
    import pyarrow.parquet as pq

    table = pq.read_table(find("newsgroups20", "newsgroups20.parquet")[0])
    return {name: np.array(table[name].to_pylist()) for name in ("text", "label", "split")}
