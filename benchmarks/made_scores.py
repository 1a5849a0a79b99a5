"""Scores that the benchmarks are run on: drawn from a seed, with known truth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["binary_scores", "multiclass_scores"]


def multiclass_scores(
    n: int, n_classes: int = 10, sharpen: float = 1.5, seed: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Draw labels and the (n, K) float32 probabilities of an overconfident model.

    The labels follow softmax(z), the model says softmax(sharpen * z).
    """
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((n, n_classes), dtype=np.float32) * np.float32(2.0)
    truth = _softmax(logits)
    drawn = rng.random((n, 1), dtype=np.float32)
    labels = (truth.cumsum(axis=1) < drawn).sum(axis=1)
    return np.minimum(labels, n_classes - 1), _softmax(logits * np.float32(sharpen))


def binary_scores(
    n: int, power: float = 1.0, seed: int = 0
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Draw labels and float32 scores s with P(event | s) = s ** power; 1 is calibrated."""
    rng = np.random.default_rng(seed)
    scores = rng.random(n, dtype=np.float32)
    chance = scores if power == 1.0 else scores**power
    return (rng.random(n, dtype=np.float32) < chance).astype(np.int8), scores


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    out: NDArray[np.float32] = np.exp(logits - logits.max(axis=1, keepdims=True))
    out /= out.sum(axis=1, keepdims=True)
    return out
