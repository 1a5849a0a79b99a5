"""Folds for cross-fitting that keep the class frequencies."""

from __future__ import annotations

import numpy as np

from calibrant.inputs import IntArray

__all__ = ["stratified_folds"]


def stratified_folds(labels: IntArray, folds: int, rng: np.random.Generator) -> IntArray:
    """Give each row a fold from 0 to `folds` - 1, spreading every class evenly over them.

    Folds differ by at most one row in all, and by at most one row of each class. A class with
    fewer rows than folds is simply missing from some.

    Examples
    --------
    >>> fold = stratified_folds(np.array([0, 0, 0, 0, 1, 1]), 2, np.random.default_rng(0))
    >>> np.bincount(fold).tolist(), np.bincount(fold[4:]).tolist()
    ([3, 3], [1, 1])
    """
    shuffled = rng.permutation(len(labels))
    ordered = shuffled[np.argsort(labels[shuffled], kind="stable")]
    fold = np.empty(len(labels), dtype=np.int64)
    # Dealt like cards, class after class: each class starts where the one before it stopped.
    fold[ordered] = np.arange(len(labels)) % folds
    return fold
