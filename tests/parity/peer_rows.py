"""Rows that both sides of a parity test see."""

from __future__ import annotations

import numpy as np

from calibrant.testing import WORLDS

BINARY = ("binary", "rare", "tied", "saturated")
MULTICLASS = ("multiclass", "long_tailed")
NO_TIES = ("binary", "calibrated", "multiclass", "long_tailed")
EVERY = BINARY + MULTICLASS


def drawn(name: str, n: int, seed: int, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and probabilities of a world in the given precision."""
    draw = WORLDS[name].draw(n, seed)
    probs = draw.probs.astype(np.float64)
    if probs.ndim == 2:
        probs /= probs.sum(axis=1, keepdims=True)
    return draw.labels, probs.astype(dtype)


def one_problem(labels: np.ndarray, probs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (event, score): label and P(positive), or for more classes right and confidence."""
    if probs.ndim == 1:
        return labels, probs
    return (probs.argmax(axis=1) == labels).astype(np.int64), probs.max(axis=1)


def decided(probs: np.ndarray) -> np.ndarray:
    """Return the class that the probabilities stand for."""
    return (probs > 0.5).astype(np.int64) if probs.ndim == 1 else probs.argmax(axis=1)
