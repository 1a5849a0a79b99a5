"""Binning of scores: shared arrays of edges, every score in exactly one bin.

A bin contains its lower edge; the last bin contains both. Bins are assigned by comparison with the
edges, never by multiplication (0.6 x 10 is not 6 in floating point).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray

Scheme = Literal["width", "mass"]
MAX_N_BINS = 10_000
"""Largest number of bins: each is resampled two thousand times, which takes memory."""
MASS_TOLERANCE = 1e-9
"""Tolerance as a share of a bin's mass: above rounding errors, below any single row."""


def width_edges(n_bins: int) -> FloatArray:
    """Return the edges i/M of M equal-width bins on [0, 1]."""
    return np.arange(n_bins + 1) / n_bins


def mass_edges(
    scores: NDArray[np.floating[Any]], mass: FloatArray | None, n_bins: int
) -> FloatArray:
    r"""Return the edges of M equal-mass bins, with tied scores in the same bin.

    A group of equal scores goes to bin :math:`\lfloor M \cdot B / W \rfloor`, with :math:`B` the
    mass strictly below it and :math:`W` the total mass. Without ties this splits by rank; with ties
    a bin may be larger than its share, and later bins may be missing.
    """
    n = len(scores)
    first = np.flatnonzero(np.r_[True, scores[1:] != scores[:-1]])  # start of each tie group
    if mass is None:
        bins = first * n_bins // n
    else:
        below = np.r_[0.0, np.cumsum(mass)]
        bins = mass_bins(below[first], below[-1], n_bins)
    starts = first[1:][bins[1:] != bins[:-1]]
    return np.concatenate([[0.0], scores[starts].astype(np.float64), [1.0]])


def mass_bins(below: FloatArray, total: float, n_bins: int) -> IntArray:
    """Return the equal-mass bin of groups of tied scores with the mass `below` strictly below them.

    A small tolerance keeps rounding, which depends on the scale of the weights, from moving a group
    across an edge.
    """
    bins = np.floor(below * (n_bins / total) + MASS_TOLERANCE).astype(np.int64)
    return np.asarray(np.minimum(bins, n_bins - 1))


def bin_index(scores: NDArray[np.floating[Any]], edges: FloatArray) -> IntArray:
    """Return the bin of each score: edges[b] <= score < edges[b+1], with 1 in the last bin."""
    n_bins = len(edges) - 1
    if not _equal_widths(edges):
        return np.searchsorted(edges[1:-1], scores, side="right")
    # Multiply, and compare with the edges only where rounding could matter: faster searchsorted.
    position = scores * scores.dtype.type(n_bins)
    index = position.astype(np.int64)
    np.minimum(index, n_bins - 1, out=index)
    near = np.abs(np.rint(position) - position) <= 4 * n_bins * np.finfo(scores.dtype).eps
    if near.any():
        index[near] = np.searchsorted(edges[1:-1], scores[near], side="right")
    return index


def check_bins(n_bins: int, scheme: str, norm: float) -> None:
    """Validate the number of bins, the scheme and the norm."""
    whole = isinstance(n_bins, int | np.integer) and not isinstance(n_bins, bool)
    if not whole or n_bins < 1:
        raise InputError(f"n_bins must be a whole number of at least 1, got {n_bins!r}.")
    if n_bins > MAX_N_BINS:
        raise InputError(f"n_bins must be at most {MAX_N_BINS:,}, got {n_bins:,}: use fewer bins.")
    if scheme not in ("width", "mass"):
        raise InputError(f"scheme must be 'width' or 'mass', got {scheme!r}.")
    if norm not in (1, 2, np.inf):
        raise InputError(f"norm must be 1, 2 or inf, got {norm!r}.")


def _equal_widths(edges: FloatArray) -> bool:
    return len(edges) > 2 and bool(np.array_equal(edges, width_edges(len(edges) - 1)))
