"""Confidence bins: edges, look-up and figures of each bin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.convert import log_odds_of
from calibrant.inputs import FloatArray, IntArray

Scale = Literal["log-odds", "probability"]
SCALES = ("log-odds", "probability")


@dataclass(frozen=True, eq=False)
class BinFigures:
    """Figures of the steer rows in M bins."""

    count: IntArray  # (M,) rows
    confidence: FloatArray  # (M,) mean probability of the top class, NaN without rows
    accuracy: FloatArray  # (M,) share of rows whose top class is right, NaN without rows

    @property
    def error(self) -> FloatArray:
        """(M,) confidence minus accuracy: above 0 the model is over-confident."""
        return self.confidence - self.accuracy


def find_bins(scores: FloatArray, edges: FloatArray) -> IntArray:
    """Return the bin of each score; a bin includes its lower edge.

    A score below all edges is in the first bin, one above all (and NaN) in the last.
    """
    return np.asarray(np.searchsorted(edges, scores, side="right"))


def even_edges(n_bins: int, scale: Scale) -> FloatArray:
    """Return the inner edges of bins of equal width in probability."""
    share = np.arange(1, n_bins) / n_bins
    return share if scale == "probability" else log_odds_of(share)


def rank_edges(scores: FloatArray, n_bins: int, min_count: int = 1) -> FloatArray:
    r"""Return the inner edges of bins of equal count in which tied scores share a bin.

    A row goes to bin $\lfloor M B / n \rfloor$, with $B$ the number of rows strictly below it: the
    rank split where there are no ties. Where n rows cannot give every bin `min_count` of them,
    neighbouring bins are merged until they can. The edge of a bin is its lowest score. An empty bin
    has no width, or begins at infinity: no row of any other split can be looked up in it either.
    """
    n = len(scores)
    groups = min(max(n // min_count, 1), n_bins)
    below = np.searchsorted(scores, scores, side="left")
    bins = below * groups // n * n_bins // groups
    first = np.searchsorted(bins, np.arange(1, n_bins), side="left")
    return np.asarray(np.append(scores, np.inf)[first])


def interpolated_edges(scores: FloatArray, n_bins: int) -> FloatArray:
    """Return all M + 1 edges of the released code's bins: sorted scores at ranks i n / M.

    Equal scores make edges coincide, and the last position, n, is read as the largest score.
    """
    n = len(scores)
    places = np.arange(n_bins + 1) * n / n_bins
    return np.asarray(np.interp(places, np.arange(n), scores))


def released_bins(scores: FloatArray, edges: FloatArray) -> IntArray:
    """Return the bin of each score as the released code counts them: (l, u], all M + 1 edges given.

    The smallest score lies in no bin: -1.
    """
    return np.asarray(np.searchsorted(edges, scores, side="left") - 1)


def bin_figures(
    index: IntArray, confidence: FloatArray, right: NDArray[np.bool_], n_bins: int
) -> BinFigures:
    """Compute the figures of each bin; rows of bin -1 are dropped."""
    in_bin = index >= 0
    index, confidence, right = index[in_bin], confidence[in_bin], right[in_bin]
    count = np.bincount(index, minlength=n_bins)
    rows = np.where(count > 0, count, np.nan)
    sums = (np.bincount(index, column, minlength=n_bins) for column in (confidence, right))
    return BinFigures(count, *(total / rows for total in sums))
