"""Score cells: a fixed, fine partition of [0, 1] for tallies of any number of rows.

Cells are uniform in log-odds, because scores cluster at 0 and 1: with real networks most rows fall
into the last cell of a uniform grid. Every edge of the equal-width bins has its own cell, so
metrics over those bins are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray
from calibrant.metrics.binning import bin_index, width_edges
from calibrant.metrics.tally import Tally

_REACH = 18.0  # log-odds covered by cells; one last cell beyond, 1.5e-8 from 0 or 1
CELLS = 8192  # Number of cells over the log-odds, for the top label and for two classes

CELL_LOG_ODDS = 2.0 * _REACH / CELLS  # Width of a cell in log-odds

_UNIT = 2.0**26


class ExactSums:
    """Sums that do not depend on the order of addition.

    Each value is split into an integer multiple of 2^-26 and a remainder below 2^-27. Integers add
    up exactly in a pair of floats (the sum and its rounding error), and the remainders are too
    small for their rounding to matter.
    """

    def __init__(self, size: int) -> None:
        self.whole = np.zeros(size)
        self.over = np.zeros(size)
        self.rest = np.zeros(size)

    def add(self, index: IntArray, values: FloatArray) -> None:
        """Add each value to the sum at its index (exact for 2^16 values of up to 2^10)."""
        whole = np.rint(values * _UNIT)
        rest = values - whole / _UNIT
        self._add_whole(np.bincount(index, whole, len(self.rest)).astype(np.float64))
        self.rest += np.bincount(index, rest, len(self.rest))

    def merge(self, other: ExactSums) -> None:
        """Add the sums of another accumulator."""
        self._add_whole(other.whole)
        self.over += other.over
        self.rest += other.rest

    def totals(self) -> FloatArray:
        """Return the sums."""
        return np.asarray((self.whole + self.over) / _UNIT + self.rest)

    def _add_whole(self, more: FloatArray) -> None:
        """Add with compensation of the rounding error (Knuth's two-sum)."""
        total = self.whole + more
        rounded = total - self.whole
        self.over += (self.whole - (total - rounded)) + (more - rounded)
        self.whole = total


class ScoreCells:
    """Accumulator of (score, event, weight) rows in constant memory, with exact merging.

    The metrics of `n_bins` bins of equal width are exact; the cells cover log-odds of -18 to 18.
    """

    def __init__(self, n_bins: int = 15, cells: int = CELLS, *, weighted: bool = False) -> None:
        self.n_bins, self.cells, self.weighted = n_bins, cells, weighted
        self.edges = width_edges(n_bins)
        # 1/2 decides the prediction of a binary problem, so it has its own cell too.
        self.exact = np.unique(np.r_[self.edges, 0.5])
        self._scale = cells / (2.0 * _REACH)
        self._exact_cell = self.index(self.exact, log_odds(self.exact))
        size = int(self._exact_cell[-1]) + 1
        self.count = np.zeros((size, 2), dtype=np.int64)
        self.first = np.full(size, np.nan)  # the first score of each cell ...
        self.mixed = np.zeros(size, dtype=bool)  # ... and whether the cell has others
        self.moment = ExactSums(size)
        self.weight = ExactSums(2 * size) if weighted else None
        self.square = np.zeros(2 * size) if weighted else None

    def index(self, scores: FloatArray, logit: FloatArray) -> IntArray:
        """Return the cell of each score.

        The index is a sum of step functions of the score: it grows at each edge between log-odds
        cells, and by one at and again after each exact value.
        """
        cell = np.clip((logit + _REACH) * self._scale, -1.0, self.cells).astype(np.int64)
        cell += 1
        bins = bin_index(scores, self.edges)
        cell += 2 * bins
        cell += scores > self.edges[bins]
        cell += scores == 1.0  # the last bin contains two exact values, its edge and 1
        if 0.5 not in self.edges:
            cell += scores >= 0.5
            cell += scores > 0.5
        return cell

    def update(
        self,
        scores: FloatArray,
        events: NDArray[np.bool_],
        logit: FloatArray,
        weights: FloatArray | None = None,
    ) -> None:
        """Add one block of rows (at most 2^16)."""
        index = self.index(scores, logit)
        self._mark_mixed(index, scores)
        pair = 2 * index
        pair += events
        size = len(self.count)
        self.count += np.bincount(pair, minlength=2 * size).reshape(size, 2)
        if self.weight is None or self.square is None:
            self.moment.add(index, scores)
            return
        assert weights is not None  # the caller checks that all batches have weights
        self.moment.add(index, scores * weights)
        self.weight.add(pair, weights)
        self.square += np.bincount(pair, weights**2, 2 * size)

    def _mark_mixed(self, index: IntArray, scores: FloatArray) -> None:
        """Mark cells with more than one distinct score; the others lose no information."""
        unmixed = np.flatnonzero(~self.mixed[index])
        if len(unmixed) == 0:
            return
        cell, score = index[unmixed], scores[unmixed]
        new = np.isnan(self.first[cell])
        self.first[cell[new]] = score[new]
        self.mixed[cell[self.first[cell] != score]] = True

    def merge(self, other: ScoreCells) -> None:
        """Add the rows of another accumulator."""
        if (self.n_bins, self.cells, self.weighted) != (other.n_bins, other.cells, other.weighted):
            raise InputError(
                "accumulators can be merged only if they have the same bins, cells and weighting."
            )
        self.count += other.count
        new = np.isnan(self.first)
        self.mixed |= other.mixed | (~new & ~np.isnan(other.first) & (self.first != other.first))
        # The smaller of the two scores, so that the order of merging does not matter.
        self.first = np.fmin(self.first, other.first)
        self.moment.merge(other.moment)
        if self.weight is not None and other.weight is not None:
            self.weight.merge(other.weight)
        if self.square is not None and other.square is not None:
            self.square += other.square

    def tally(self) -> Tally:
        """Return the tally of the non-empty cells."""
        filled = np.flatnonzero(self.count.any(axis=1))
        count = self.count[filled].astype(np.float64)
        if self.weight is None or self.square is None:
            weight = square = count
        else:
            weight = self.weight.totals().reshape(-1, 2)[filled]
            square = self.square.reshape(-1, 2)[filled]
        mass = weight.sum(axis=1)
        mean = self.moment.totals()[filled] / np.where(mass > 0, mass, 1.0)
        mixed = self.mixed[filled]
        score = np.where(mixed, self._clip_to_cells(filled, mean), self.first[filled])
        return Tally(score, count, weight, square, mixed)

    def _clip_to_cells(self, filled: IntArray, mean: FloatArray) -> FloatArray:
        """Clip the mean score of each cell to the exact values around it, against rounding."""
        below = np.searchsorted(self._exact_cell, filled, side="right") - 1
        is_exact = self._exact_cell[below] == filled
        above = np.minimum(below + 1, len(self.exact) - 1)
        low = np.nextafter(self.exact[below], 1.0)
        high = np.nextafter(self.exact[above], 0.0)
        return np.where(is_exact, self.exact[below], np.clip(mean, low, high))

    def to_dict(self) -> dict[str, Any]:
        """Return the state of the non-empty cells as lists."""
        filled = np.flatnonzero(self.count.any(axis=1))
        out: dict[str, Any] = {
            "n_bins": self.n_bins,
            "cells": self.cells,
            "weighted": self.weighted,
            "filled": filled.tolist(),
            "count": self.count[filled].tolist(),
            "first": self.first[filled].tolist(),
            "mixed": self.mixed[filled].tolist(),
            "moment": _sums_to_dict(self.moment, filled, 1),
        }
        if self.weight is not None and self.square is not None:
            out["weight"] = _sums_to_dict(self.weight, filled, 2)
            out["square"] = self.square.reshape(-1, 2)[filled].tolist()
        return out

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> ScoreCells:
        """Rebuild from `to_dict`."""
        out = cls(saved["n_bins"], saved["cells"], weighted=saved["weighted"])
        filled = np.asarray(saved["filled"], dtype=np.int64)
        if len(filled) == 0:
            return out
        out.count[filled] = saved["count"]
        out.first[filled] = saved["first"]
        out.mixed[filled] = saved["mixed"]
        _restore(out.moment, saved["moment"], filled, 1)
        if out.weight is not None and out.square is not None:
            _restore(out.weight, saved["weight"], filled, 2)
            out.square.reshape(-1, 2)[filled] = saved["square"]
        return out


def _sums_to_dict(sums: ExactSums, filled: IntArray, columns: int) -> dict[str, Any]:
    """Return the sums of the filled cells as lists."""
    return {
        part: getattr(sums, part).reshape(-1, columns)[filled].tolist()
        for part in ("whole", "over", "rest")
    }


def _restore(sums: ExactSums, saved: Mapping[str, Any], filled: IntArray, columns: int) -> None:
    """Restore sums from `_sums_to_dict`."""
    for part, values in saved.items():
        getattr(sums, part).reshape(-1, columns)[filled] = values


def log_odds(scores: FloatArray) -> FloatArray:
    """Return the log-odds of scores; infinite at 0 and 1."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(scores) - np.log1p(-scores))
