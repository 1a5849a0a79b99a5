"""Error bounds of metrics computed from score cells instead of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray
from calibrant.metrics.binning import mass_bins
from calibrant.metrics.cells import CELL_LOG_ODDS
from calibrant.metrics.ranking import aurc_influence
from calibrant.metrics.summary import SufficientStatistics
from calibrant.metrics.tally import Tally
from calibrant.results import Figure

__all__ = ["add_error_bounds"]


def add_error_bounds(
    figures: Mapping[str, Figure], summary: SufficientStatistics, target: str, n_bins: int
) -> dict[str, Figure]:
    """Attach an error bound to each metric that depends on the order of rows within cells."""
    tallies = [view.tally for view in summary.by_class()]
    head = tallies[1] if target == "positive" else summary.top
    bounds = {
        "ece_em": mass_bound(head, n_bins),
        "ece_em_top_label": mass_bound(summary.top, n_bins),
        "ece_debiased": debiased_bound(head, n_bins, figures["ece_debiased"].value or 0.0),
        "ks": running_bound(head),
        "ece_smooth": smooth_bound(head, figures["ece_smooth"].value or 1.0),
        "aurc": aurc_bound(summary.top),
    }
    per_class = [
        (mass_bound(t, n_bins), auroc_bound(t), auprc_bound(t), _has_both_events(t))
        for t in tallies
    ]
    bounds["ace"] = float(np.mean([row[0] for row in per_class]))
    ranked = [row for row in per_class if row[3]][-1 if len(summary.classes) == 2 else 0 :]
    if ranked:
        bounds["auroc"] = float(np.mean([row[1] for row in ranked]))
        bounds["auprc"] = float(np.mean([row[2] for row in ranked]))
    return {
        name: replace(figure, error_bound=bounds[name]) if name in bounds else figure
        for name, figure in figures.items()
    }


def mass_bound(tally: Tally, n_bins: int) -> float:
    """Bound for equal-mass errors: part of a cell split by a bin edge may be in either bin.

    That part has a residual of at most the cell's events or its non-events alone, and it is missing
    in one bin and added in the other.
    """
    cut = np.unique(_split_cells(tally, n_bins))
    return float(2.0 * np.maximum(*_one_sided_residuals(tally))[cut[cut >= 0]].sum() / tally.total)


def debiased_bound(tally: Tally, n_bins: int, value: float) -> float:
    """Bound for the debiased error: each bin may gain or lose part of the cells at its two edges.

    No bin contributes more than its mass to the squared error, because no gap exceeds 1.
    """
    cut = _split_cells(tally, n_bins)
    below = np.cumsum(tally.mass) - tally.mass
    bins = mass_bins(below, tally.total, n_bins)
    gap, share = (
        np.bincount(bins, part, n_bins) for part in (tally.residual, tally.mass / tally.total)
    )
    # An edge that splits no cell (-1) moves nothing: it indexes the appended 0.
    moved, mass = (
        _sum_adjacent_edges(np.append(part, 0.0)[cut] / tally.total)
        for part in (np.maximum(*_one_sided_residuals(tally)), tally.mass)
    )
    gap, safe = np.abs(gap), np.where(share > 0, share, 1.0)
    now, most = gap**2 / safe, share + mass
    left = np.maximum(share - mass, 1e-300)
    up = np.minimum((gap + moved) ** 2 / left, most) - now
    down = now - np.maximum(gap - moved, 0.0) ** 2 / np.where(most > 0, most, 1.0)
    chance = np.where(mass > 0, most / (4.0 * np.maximum(left * tally.n - 1.0, 1.0)), 0.0)
    change = float((np.maximum(up, down) + chance).sum())
    low = np.sqrt(max(0.0, value**2 - change))
    furthest = max(np.sqrt(value**2 + change) - value, value - low)
    return float(min(furthest, max(value, 1.0 - value)))  # the error is in [0, 1]


def _sum_adjacent_edges(at_edges: FloatArray) -> FloatArray:
    """Add the amount at each edge to the bin below and the bin above it."""
    return np.asarray(np.append(at_edges, 0.0) + np.append(0.0, at_edges))


def _split_cells(tally: Tally, n_bins: int) -> IntArray:
    """Return the mixed cell that each edge of equal-mass bins splits, or -1."""
    below = np.r_[0.0, np.cumsum(tally.mass)]
    goals = np.arange(1, n_bins) * below[-1] / n_bins
    cell = np.searchsorted(below, goals, side="left") - 1
    return np.where((below[cell + 1] > goals) & _is_mixed(tally)[cell], cell, -1)


def running_bound(tally: Tally) -> float:
    """Bound for KS: how far the running sum can deviate within a cell."""
    away = np.where(_is_mixed(tally), np.minimum(*_one_sided_residuals(tally)), 0.0)
    return float(away.max() / tally.total)


def smooth_bound(tally: Tally, sigma: float) -> float:
    r"""Bound for smooth ECE: each row is at most a cell's width from the score of its cell.

    Two Gaussian kernels a distance d apart differ by at most :math:`d\sqrt{2/\pi}/\sigma` in L1.
    """
    up, down = _one_sided_residuals(tally)
    width = tally.score * (1.0 - tally.score) * CELL_LOG_ODDS
    moved = np.where(_is_mixed(tally), (up + down) * width, 0.0).sum() / tally.total
    return float(moved * np.sqrt(2.0 / np.pi) / sigma)


def auroc_bound(tally: Tally) -> float:
    """Bound for AUROC: pairs within a cell count 1/2, and could count 0 or 1."""
    negatives, positives = tally.weight.sum(axis=0)
    if not _has_both_events(tally):
        return 0.0
    inside = (tally.weight[:, 0] * tally.weight[:, 1])[_is_mixed(tally)].sum()
    return float(inside / (2.0 * negatives * positives))


def auprc_bound(tally: Tally) -> float:
    """Bound for average precision, from the best and worst precision at each event.

    At best all events of a cell tie ahead of its non-events; at worst an event ranks directly after
    them, with no event of the cell before it.
    """
    if not _has_both_events(tally):
        return 0.0
    mixed = _is_mixed(tally)[::-1]
    hits, misses = tally.hits[::-1], tally.weight[:, 0][::-1]
    right = np.cumsum(hits) - hits  # strictly above each cell, from the top
    above = np.cumsum(hits + misses) - hits - misses
    best = (right + hits) / np.where(above + hits > 0, above + hits, 1.0)
    last = above + misses
    worst = np.where(last > 0, right / np.where(last > 0, last, 1), 1.0)
    return float((hits * (best - worst))[mixed].sum() / hits.sum())


def aurc_bound(tally: Tally) -> float:
    """Bound for AURC: errors last or first within every cell, by splitting each cell in two."""
    best, worst = (
        aurc_influence(_split_mixed_cells(tally, order))[0] for order in ((0, 1), (1, 0))
    )
    return worst - best


def _split_mixed_cells(tally: Tally, order: tuple[int, int]) -> Tally:
    """Split each mixed cell into its non-events and events, in ascending `order`."""
    keep = ~_is_mixed(tally)

    def split(part: FloatArray) -> FloatArray:
        out = np.zeros((2 * len(part), 2))
        out[0::2][keep] = part[keep]
        for offset, column in enumerate(order):
            out[offset::2, column][~keep] = part[~keep, column]
        return out

    count, weight, square = (split(part) for part in (tally.count, tally.weight, tally.square))
    filled = count.any(axis=1)
    return Tally(np.repeat(tally.score, 2)[filled], count[filled], weight[filled], square[filled])


def _one_sided_residuals(tally: Tally) -> tuple[FloatArray, FloatArray]:
    """Return the largest residual of a cell's events alone and of its non-events alone.

    Scores within a cell, and their complements, differ from its mean by less than 4 %.
    """
    up = tally.weight[:, 1] * np.minimum(1.04 * (1.0 - tally.score) + 2e-8, 1.0)
    return up, tally.weight[:, 0] * np.minimum(1.04 * tally.score + 2e-8, 1.0)


def _is_mixed(tally: Tally) -> NDArray[np.bool_]:
    return np.zeros(len(tally.score), dtype=bool) if tally.mixed is None else tally.mixed


def _has_both_events(tally: Tally) -> bool:
    negatives, positives = tally.weight.sum(axis=0)
    return bool(negatives > 0 and positives > 0)
