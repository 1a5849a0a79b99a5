"""The numbers behind the figures: reliability tables, smooth curve, threshold curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.metrics.calibration_figures import Resampled
from calibrant.metrics.summary import Summary
from calibrant.metrics.tally import Tally, sum_between
from calibrant.results import Bins

__all__ = [
    "ThresholdCurve",
    "class_curve",
    "drawn_classes",
    "reliability_bins",
    "smooth_curve",
    "threshold_curve",
]

_POINTS = 10_000  # of all drawn curves together: more would only make the page heavier
_HISTOGRAM = 40
_DRAWN_CLASSES = 50


@dataclass(frozen=True)
class ThresholdCurve:
    """Precision, recall and share of flagged rows when scores >= threshold are flagged.

    `bound` is None where every score is known. From a stream it says, for each threshold, how far
    any of the three can be off: the rows of the threshold's own cell may lie on either side.
    """

    threshold: FloatArray
    precision: FloatArray
    recall: FloatArray
    flagged: FloatArray
    bound: FloatArray | None = None

    def to_dict(self) -> dict[str, list[float]]:
        """Return plain lists."""
        return {name: values.tolist() for name, values in vars(self).items() if values is not None}


def threshold_curve(tally: Tally, points: int | None = None) -> ThresholdCurve:
    """Compute precision and recall at every distinct score, highest threshold last.

    Examples
    --------
    >>> from calibrant.metrics.tally import tally_rows
    >>> curve = threshold_curve(tally_rows(np.array([.2, .6, .9]), np.array([False, True, True])))
    >>> curve.threshold, curve.precision.round(3), curve.recall
    (array([0.2, 0.6, 0.9]), array([0.667, 1.   , 1.   ]), array([1. , 1. , 0.5]))
    """
    kept = np.cumsum(tally.mass[::-1])[::-1]
    right = np.cumsum(tally.hits[::-1])[::-1]
    at = np.flatnonzero(kept > 0)
    if points is not None and len(at) > points:
        # Evenly in rank and evenly in score: rare classes live in a thin slice of either.
        ranks = np.searchsorted(-kept / kept[0], -np.linspace(1.0, 0.0, points // 2), "left")
        values = np.searchsorted(tally.score, np.linspace(0.0, 1.0, points // 2))
        at = np.unique(np.clip(np.concatenate([ranks, values, [0, at[-1]]]), 0, at[-1]))
    events = right[0] if right[0] > 0 else np.nan
    bound = None
    if tally.mixed is not None:
        # A share of a smaller whole moves most, and precision has the smallest: what is flagged.
        off = np.maximum(tally.mass[at] / kept[at], tally.hits[at] / events)
        bound = np.where(tally.mixed[at], np.nan_to_num(off), 0.0)
    return ThresholdCurve(
        tally.score[at], right[at] / kept[at], right[at] / events, kept[at] / kept[0], bound
    )


def drawn_classes(summary: Summary) -> set[int]:
    """Return the classes whose curves are kept: the largest, up to fifty."""
    rows = summary.confusion.count.sum(axis=1)
    return set(np.argsort(-rows, kind="stable")[:_DRAWN_CLASSES].tolist())


def class_curve(name: Any, tally: Tally, n_drawn: int) -> dict[str, Any]:
    """Return the threshold curve and the score histogram of one of the `n_drawn` classes."""
    edges = np.linspace(0.0, 1.0, _HISTOGRAM + 1)
    return {
        "class": name,
        "curve": threshold_curve(tally, min(2000, _POINTS // n_drawn)).to_dict(),
        "edges": edges.tolist(),
        "with_event": tally.per_bin(edges, tally.weight[:, 1]).tolist(),
        "without_event": tally.per_bin(edges, tally.weight[:, 0]).tolist(),
    }


def reliability_bins(sample: Resampled, scheme: str, target: str) -> Bins:
    """Tabulate bins with the band in which event rates of a calibrated model would fall."""
    edges = sample.width if scheme == "width" else sample.mass
    cells, starts = sample.cells, sample.cells.starts(edges)
    mass = sum_between(cells.mass, starts)
    filled = mass > 0
    share = mass[filled] / cells.total
    score = sum_between(cells.mass * cells.score, starts)[filled] / mass[filled]
    drawn = sum_between(sample.null, starts)[:, filled] / share
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return Bins(
        target=target,
        scheme=scheme,
        low=edges[:-1][filled],
        high=edges[1:][filled],
        count=sum_between(cells.rows, starts)[filled].round().astype(np.int64),
        weight=mass[filled],
        score=score,
        rate=sum_between(cells.hits, starts)[filled] / mass[filled],
        band_low=np.clip(score + low, 0.0, 1.0),
        band_high=np.clip(score + high, 0.0, 1.0),
    )


def smooth_curve(sample: Resampled, points: int = 101) -> dict[str, list[float]]:
    """Kernel-smoothed event rate against the score, where there is data to smooth.

    The bandwidth is that of Silverman's rule, at least 0.02; the kernel is not reflected, for a
    ratio of two smoothed sums needs no correction at the ends.
    """
    cells = sample.cells
    centred = cells.score - cells.mean_score
    spread = float(np.sqrt(cells.mass @ centred**2 / cells.total))
    sigma = max(0.02, 0.9 * spread * cells.n**-0.2)
    grid = np.linspace(cells.score[0], cells.score[-1], points)
    kernel = np.exp(-0.5 * ((grid[:, None] - cells.score[None, :]) / sigma) ** 2)
    mass = kernel @ cells.mass
    seen = mass > 1e-3 * mass.max()
    # Smoothing the residual and adding the score back keeps a calibrated curve on the diagonal.
    rate = grid + kernel @ (cells.residual * cells.total) / np.where(seen, mass, 1.0)
    return {"score": grid[seen].tolist(), "rate": np.clip(rate[seen], 0.0, 1.0).tolist()}
