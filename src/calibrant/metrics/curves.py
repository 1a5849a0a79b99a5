"""Data of the plots: reliability tables, smooth reliability curve, threshold curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.metrics.calibration_figures import BootstrapTally
from calibrant.metrics.summary import SufficientStatistics
from calibrant.metrics.tally import Tally, sum_between
from calibrant.results import Bins

_MAX_POINTS = 10_000  # over all plotted curves, to limit the size of the page
_HISTOGRAM_BINS = 40
_MAX_PLOTTED_CLASSES = 50


@dataclass(frozen=True)
class ThresholdCurve:
    """Precision, recall and share of flagged rows when scores >= threshold are flagged.

    `bound` is None if every score is known. From a stream it bounds the error of all three at each
    threshold, because the rows in the threshold's cell may be on either side of it.
    """

    threshold: FloatArray
    precision: FloatArray
    recall: FloatArray
    flagged: FloatArray
    bound: FloatArray | None = None

    def to_dict(self) -> dict[str, list[float]]:
        """Return the arrays as lists."""
        return {name: values.tolist() for name, values in vars(self).items() if values is not None}


def threshold_curve(tally: Tally, points: int | None = None) -> ThresholdCurve:
    """Compute precision and recall at every distinct score, in ascending order of the threshold."""
    flagged = np.cumsum(tally.mass[::-1])[::-1]
    right = np.cumsum(tally.hits[::-1])[::-1]
    at = np.flatnonzero(flagged > 0)
    if points is not None and len(at) > points:
        # Evenly in rank and evenly in score: rare classes occupy a small range of either.
        ranks = np.searchsorted(-flagged / flagged[0], -np.linspace(1.0, 0.0, points // 2), "left")
        values = np.searchsorted(tally.score, np.linspace(0.0, 1.0, points // 2))
        at = np.unique(np.clip(np.concatenate([ranks, values, [0, at[-1]]]), 0, at[-1]))
    events = right[0] if right[0] > 0 else np.nan
    bound = None
    if tally.mixed is not None:
        # Precision has the smallest denominator, the flagged rows, so it changes most.
        off = np.maximum(tally.mass[at] / flagged[at], tally.hits[at] / events)
        bound = np.where(tally.mixed[at], np.nan_to_num(off), 0.0)
    return ThresholdCurve(
        tally.score[at],
        right[at] / flagged[at],
        right[at] / events,
        flagged[at] / flagged[0],
        bound,
    )


def plotted_classes(summary: SufficientStatistics) -> set[int]:
    """Return the classes whose curves are plotted: the largest, up to fifty."""
    rows = summary.confusion.count.sum(axis=1)
    return set(np.argsort(-rows, kind="stable")[:_MAX_PLOTTED_CLASSES].tolist())


def class_curve(name: Any, tally: Tally, n_plotted: int) -> dict[str, Any]:
    """Return the threshold curve and score histogram of one of `n_plotted` classes."""
    edges = np.linspace(0.0, 1.0, _HISTOGRAM_BINS + 1)
    return {
        "class": name,
        "curve": threshold_curve(tally, min(2000, _MAX_POINTS // n_plotted)).to_dict(),
        "edges": edges.tolist(),
        "with_event": tally.per_bin(edges, tally.weight[:, 1]).tolist(),
        "without_event": tally.per_bin(edges, tally.weight[:, 0]).tolist(),
    }


def reliability_bins(sample: BootstrapTally, scheme: str, target: str) -> Bins:
    """Return the reliability table, with a 95 % band for the event rates of a calibrated model."""
    edges = sample.width if scheme == "width" else sample.mass
    cells, starts = sample.cells, sample.cells.starts(edges)
    mass = sum_between(cells.mass, starts)
    filled = mass > 0
    share = mass[filled] / cells.total
    score = sum_between(cells.mass * cells.score, starts)[filled] / mass[filled]
    deviations = sum_between(sample.null, starts)[:, filled] / share
    low, high = np.quantile(deviations, [0.025, 0.975], axis=0)
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


def smooth_curve(sample: BootstrapTally, points: int = 101) -> dict[str, list[float]]:
    """Return the kernel-smoothed event rate by score, where there is data.

    The bandwidth follows Silverman's rule, at least 0.02. The kernel is not reflected, because a
    ratio of two smoothed sums needs no boundary correction.
    """
    cells = sample.cells
    centred = cells.score - cells.mean_score
    spread = float(np.sqrt(cells.mass @ centred**2 / cells.total))
    sigma = max(0.02, 0.9 * spread * cells.n**-0.2)
    grid = np.linspace(cells.score[0], cells.score[-1], points)
    kernel = np.exp(-0.5 * ((grid[:, None] - cells.score[None, :]) / sigma) ** 2)
    mass = kernel @ cells.mass
    has_data = mass > 1e-3 * mass.max()
    # Smoothing the residual and adding the score back keeps a calibrated curve on the diagonal.
    rate = grid + kernel @ (cells.residual * cells.total) / np.where(has_data, mass, 1.0)
    return {"score": grid[has_data].tolist(), "rate": np.clip(rate[has_data], 0.0, 1.0).tolist()}
