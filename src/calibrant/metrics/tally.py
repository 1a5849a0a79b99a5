"""A tally: distinct scores in order, and how often the event came and did not come at each.

Every calibration error, ranking metric, interval, floor and test of one binary problem is
computed from a tally, whether it was made from rows in memory or collected from a stream.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray

__all__ = ["Tally", "sum_between", "tally_and_places", "tally_rows"]


@dataclass(frozen=True)
class Tally:
    r"""A binary problem in compact form; column 1 is "the event came", column 0 "it did not".

    Parameters
    ----------
    score : (C,) ascending scores (of merged cells: their weighted mean)
    count : (C, 2) number of rows
    weight : (C, 2) sum of the rows' weights
    square : (C, 2) sum of the squared weights; it carries the variance of weighted sums
    mixed : (C,) whether a cell of a stream holds more than one distinct score; None: none does
    """

    score: FloatArray
    count: FloatArray
    weight: FloatArray
    square: FloatArray
    mixed: NDArray[np.bool_] | None = None

    @cached_property
    def n(self) -> int:
        """Rows."""
        return round(float(self.count.sum()))

    @cached_property
    def total(self) -> float:
        """Sum of all weights W."""
        return float(self.weight.sum())

    @cached_property
    def mass(self) -> FloatArray:
        """Weight at each score."""
        return _both(self.weight)

    @cached_property
    def rows(self) -> FloatArray:
        """Rows at each score."""
        return _both(self.count)

    @cached_property
    def spread(self) -> FloatArray:
        """Squared weights at each score."""
        return _both(self.square)

    @cached_property
    def by_event(self) -> tuple[float, float] | None:
        """Weight of a row without and with the event, where the event decides it; else None.

        So it is where rows were sampled by their label, such as all frauds and few other rows.
        """
        rows, mass, squares = (part.sum(axis=0) for part in (self.count, self.weight, self.square))
        if rows.min() == 0:
            return None
        without, with_event = (float(each) for each in mass / rows)
        alike = np.allclose(squares * rows, mass**2, rtol=1e-9, atol=0.0)
        if not alike or np.isclose(without, with_event, rtol=1e-9, atol=0.0):
            return None
        return without, with_event

    @cached_property
    def chance(self) -> FloatArray:
        r"""Chance of the event in a row of the sample, if the scores are right.

        It is the score s; where the event decides a row's weight, rows with it were taken more or
        less often than others, by :math:`1 / w_1` and :math:`1 / w_0`, and the chance is

        .. math:: \frac{s / w_1}{s / w_1 + (1 - s) / w_0}
        """
        if self.by_event is None:
            return self.score
        without, with_event = self.by_event
        taken = self.score * without
        return np.asarray(taken / (taken + (1.0 - self.score) * with_event))

    @cached_property
    def leverage(self) -> FloatArray:
        """By how much, squared and summed, events at each score move the sum of residuals."""
        if self.by_event is None:
            return self.spread
        without, with_event = self.by_event
        return self.rows * (with_event * (1.0 - self.score) + without * self.score) ** 2

    @property
    def hits(self) -> FloatArray:
        """Weight of events at each score."""
        return self.weight[:, 1]

    @cached_property
    def residual(self) -> FloatArray:
        r"""Share of the total at each score by which events exceed it: (hits - score mass)/W."""
        return np.asarray((self.hits - self.mass * self.score) / self.total)

    @property
    def mean_score(self) -> float:
        """Mean score."""
        return float(self.mass @ self.score / self.total)

    @property
    def event_rate(self) -> float:
        """Share of events."""
        return float(self.hits.sum() / self.total)

    def starts(self, edges: FloatArray) -> IntArray:
        """Return where each bin begins, with the end of the last: (M + 1,) positions."""
        inner = np.searchsorted(self.score, edges[1:-1], side="left")
        return np.concatenate([[0], inner, [len(self.score)]])

    def per_bin(self, edges: FloatArray, values: FloatArray) -> FloatArray:
        """Sum `values` (..., C) over the scores of each bin, giving (..., M)."""
        return sum_between(values, self.starts(edges))

    def compress(self, edges: FloatArray, cells: int = 512) -> Tally:
        """Merge neighbouring scores into about `cells` cells; no cell crosses one of the `edges`.

        Sums over bins with these edges stay exact; resampling costs per cell, not per row.
        """
        if len(self.score) <= cells:
            return self
        ranks = np.cumsum(self.mass) / self.total
        cuts = np.searchsorted(ranks, np.arange(1, cells) / cells, side="left")
        bounds = np.searchsorted(self.score, edges, side="left")
        starts = np.unique(np.concatenate([[0], cuts, bounds]))
        return self.merge_at(starts[starts < len(self.score)])

    def merge_at(self, starts: IntArray) -> Tally:
        """Merge the scores from each start to the next into one cell."""
        mass = np.add.reduceat(self.mass, starts)
        moment = np.add.reduceat(self.mass * self.score, starts)
        # Rounding must not carry a mean out of its cell, or it would fall into another bin.
        ends = np.append(starts[1:], len(self.score)) - 1
        score = np.clip(moment / mass, self.score[starts], self.score[ends])
        count, weight, square = (
            np.add.reduceat(part, starts, axis=0) for part in (self.count, self.weight, self.square)
        )
        return Tally(score, count, weight, square)  # cells of cells: no bound is asked of them

    def redraw(self, hits: FloatArray) -> Tally:
        """Return the same scores with `hits` (C,) rows having the event instead.

        Where the event decides a row's weight, a row that gets another event gets its weight too.
        """
        rows = self.rows
        if self.by_event is not None:
            count = np.column_stack([rows - hits, hits])
            heavy = np.array(self.by_event)
            return replace(self, count=count, weight=count * heavy, square=count * heavy**2)
        ones = hits / rows
        # Rows of unequal weight vary more than their number tells: by the sum of squares.
        stretch = np.sqrt(self.spread * rows) / self.mass
        heavy = self.score + (ones - self.score) * stretch  # beyond [0, 1] for a cell, not a bin
        return replace(
            self,
            count=rows[:, None] * np.column_stack([1.0 - ones, ones]),
            weight=self.mass[:, None] * np.column_stack([1.0 - heavy, heavy]),
            square=self.spread[:, None] * np.column_stack([1.0 - ones, ones]),
        )


def tally_rows(
    scores: NDArray[np.floating[Any]],
    events: NDArray[np.bool_],
    weights: FloatArray | None = None,
) -> Tally:
    """Sort rows by score and merge those with equal scores.

    Scores are probabilities: none may be negative. For log-odds take `tally_and_places`.

    Examples
    --------
    >>> tally = tally_rows(np.array([0.8, 0.2, 0.8]), np.array([True, False, False]))
    >>> tally.score, tally.count.tolist()
    (array([0.2, 0.8]), [[1.0, 0.0], [1.0, 1.0]])
    """
    if weights is not None:
        return tally_and_places(scores, events, weights)[0]
    ordered, came = _sort_pairs(scores, events)
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rows = np.diff(np.r_[starts, len(ordered)]).astype(np.float64)
    count = _split(rows, came.astype(np.float64), starts)
    return Tally(ordered[starts].astype(np.float64, copy=False), count, count, count)


def tally_and_places(
    scores: NDArray[np.floating[Any]],
    events: NDArray[np.bool_],
    weights: FloatArray | None = None,
) -> tuple[Tally, IntArray]:
    """Return the tally and where in it each row stands."""
    order = np.argsort(scores)
    ordered = scores[order].astype(np.float64, copy=False)
    came = events[order].astype(np.float64)
    begins = np.r_[True, ordered[1:] != ordered[:-1]]
    starts = np.flatnonzero(begins)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(begins) - 1
    rows = np.diff(np.r_[starts, len(ordered)]).astype(np.float64)
    count = _split(rows, came, starts)
    if weights is None:
        return Tally(ordered[starts], count, count, count), place
    heavy = weights[order]
    weight, square = (
        _split(np.add.reduceat(power, starts), came * power, starts) for power in (heavy, heavy**2)
    )
    return Tally(ordered[starts], count, weight, square), place


def _sort_pairs(
    scores: NDArray[np.floating[Any]], events: NDArray[np.bool_]
) -> tuple[NDArray[np.floating[Any]], NDArray[np.bool_]]:
    """Sort scores and carry the events along.

    Floats that are not negative sort like their bits; with the event as lowest bit, sorting one
    array of whole numbers does it, at half the cost of argsort and two gathers.
    """
    whole = np.uint32 if scores.dtype == np.float32 else np.uint64
    keys = (np.ascontiguousarray(scores) + scores.dtype.type(0)).view(whole)  # -0.0 becomes 0.0
    keys <<= whole(1)
    keys |= events.astype(whole)
    keys.sort()
    came = (keys & whole(1)).astype(bool)
    keys >>= whole(1)
    return keys.view(scores.dtype), came


def sum_between(values: FloatArray, starts: IntArray) -> FloatArray:
    """Sum the last axis between consecutive positions; an empty stretch gives 0."""
    filled = starts[:-1] < starts[1:]
    out = np.zeros((*values.shape[:-1], len(starts) - 1))
    if filled.any():
        out[..., filled] = np.add.reduceat(values, starts[:-1][filled], axis=-1)
    return out


def _both(pairs: FloatArray) -> FloatArray:
    return np.asarray(pairs[:, 0] + pairs[:, 1])  # sum(axis=1) is twenty times slower on (C, 2)


def _split(whole: FloatArray, ones: FloatArray, starts: IntArray) -> FloatArray:
    came = np.add.reduceat(ones, starts)
    return np.column_stack([np.maximum(whole - came, 0.0), came])  # rounding must not go below 0
