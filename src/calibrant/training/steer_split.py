"""Splitting rows off for steering: a share of every class, drawn before anything is learned."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import IntArray

__all__ = ["steer_mask"]


def steer_mask(labels: IntArray, share: float, *, seed: int = 0) -> NDArray[np.bool_]:
    """Mark the rows that steer: the same share of every class, drawn at random.

    A class with at least two rows gives at least one and keeps at least one for training; a class
    with one row keeps it. So with many rare classes more than the share is marked.

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
            f"steer_share must be a share above 0 and below 1, got {share!r}: 0.1 splits off a "
            "tenth of the rows."
        )
    draw = np.random.default_rng(seed)
    marked = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        places = draw.permutation(np.flatnonzero(labels == label))
        asked = max(int(float(share) * len(places) + 0.5), 1)
        marked[places[: min(asked, len(places) - 1)]] = True
    if not marked.any():
        raise InputError(
            f"the steer split would be empty: no class has 2 rows among the {len(labels)} given, "
            "so give more rows, or steer=(X, y) with rows of its own."
        )
    return marked
