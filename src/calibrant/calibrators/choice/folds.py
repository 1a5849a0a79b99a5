"""Random folds for cross-fitting, stratified by rare classes only."""

from __future__ import annotations

import numpy as np

from calibrant.inputs import IntArray


def random_folds(labels: IntArray, folds: int, rng: np.random.Generator) -> IntArray:
    """Assign each row a fold from 0 to `folds` - 1; fold sizes differ by at most one row.

    Only classes with fewer than two rows per fold are stratified, so that no fit misses them. All
    other rows are assigned at random: folds with exactly the class frequencies of the sample would
    reproduce the noise in these, and with many classes every method that learns a shift for each
    class would look better than it is.
    """
    shuffled = rng.permutation(len(labels))
    rare = np.bincount(labels)[labels[shuffled]] < 2 * folds
    # Rare classes first, one after the other, then all other rows in shuffled order.
    order = np.argsort(np.where(rare, labels[shuffled], labels.max() + 1), kind="stable")
    fold = np.empty(len(labels), dtype=np.int64)
    fold[shuffled[order]] = np.arange(len(labels)) % folds
    return fold
