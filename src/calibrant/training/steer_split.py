"""Stratified split of steer rows."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import IntArray

__all__ = ["steer_mask"]


def steer_mask(labels: IntArray, share: float, *, seed: int = 0) -> NDArray[np.bool_]:
    """Return a mask of the steer rows: the same random share of every class.

    A class with at least two rows has at least one steer row and one train row; a class with one
    row has a train row. With many rare classes the mask therefore exceeds the share.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.training.steer_split import steer_mask
    >>> marked = steer_mask(np.array([0] * 20 + [1] * 3 + [2]), 0.1)
    >>> [int(marked[:20].sum()), int(marked[20:23].sum()), int(marked[23:].sum())]
    [2, 1, 0]
    """
    if not isinstance(share, Real) or isinstance(share, bool) or not 0 < share < 1:
        raise InputError(
            f"steer_share must be above 0 and below 1, got {share!r}: 0.1 splits off a tenth of "
            "the rows."
        )
    draw = np.random.default_rng(seed)
    marked = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        positions = draw.permutation(np.flatnonzero(labels == label))
        n_steer = max(int(float(share) * len(positions) + 0.5), 1)
        marked[positions[: min(n_steer, len(positions) - 1)]] = True
    if not marked.any():
        raise InputError(
            f"the steer split would be empty because no class has 2 rows among the {len(labels)} "
            "given: give more rows, or separate ones with steer=(X, y)."
        )
    return marked
