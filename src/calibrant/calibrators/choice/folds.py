"""Folds for cross-fitting: dealt at random, rare classes spread evenly."""

from __future__ import annotations

import numpy as np

from calibrant.inputs import IntArray

__all__ = ["random_folds"]


def random_folds(labels: IntArray, folds: int, rng: np.random.Generator) -> IntArray:
    """Give each row a fold from 0 to `folds` - 1; folds differ by at most one row.

    Only classes with fewer than two rows for each fold are spread evenly, so that they are not
    missing where something is fitted. All other rows are dealt at random: folds with exactly the
    class frequencies of the sample would confirm whatever noise is in these, and with many classes
    every method that learns a shift for each of them would look better than it is.

    Examples
    --------
    >>> fold = random_folds(np.array([0, 0, 0, 0, 1, 1]), 2, np.random.default_rng(0))
    >>> np.bincount(fold).tolist(), np.bincount(fold[4:]).tolist()
    ([3, 3], [1, 1])
    """
    shuffled = rng.permutation(len(labels))
    rare = np.bincount(labels)[labels[shuffled]] < 2 * folds
    # Dealt like cards: class after class while classes are rare, then all others as they come.
    order = np.argsort(np.where(rare, labels[shuffled], labels.max() + 1), kind="stable")
    fold = np.empty(len(labels), dtype=np.int64)
    fold[shuffled[order]] = np.arange(len(labels)) % folds
    return fold
