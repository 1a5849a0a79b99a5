"""How far a figure computed from cells can be from the figure of the rows behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray
from calibrant.metrics.cells import CELL_LOG_ODDS
from calibrant.metrics.ranking import aurc_influence
from calibrant.metrics.summary import Summary
from calibrant.metrics.tally import Tally
from calibrant.results import Figure

__all__ = ["bounded_figures"]


def bounded_figures(
    figures: Mapping[str, Figure], summary: Summary, target: str, n_bins: int
) -> dict[str, Figure]:
    """Attach to each figure that depends on the order inside cells the bound of its error."""
    tallies = [view.tally for view in summary.by_class()]
    head = tallies[1] if target == "positive" else summary.top
    bounds = {
        "ece_em": mass_bound(head, n_bins),
        "ece_em_top_label": mass_bound(summary.top, n_bins),
        "ks": running_bound(head),
        "ece_smooth": smooth_bound(head, figures["ece_smooth"].value or 1.0),
        "aurc": aurc_bound(summary.top),
    }
    per_class = [
        (mass_bound(t, n_bins), auroc_bound(t), auprc_bound(t), _ranked(t)) for t in tallies
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
    """Bound for equal-mass errors: part of a cell that a bin border cuts may change sides.

    What changes sides carries a residual of at most the cell's events or its non-events alone,
    and is missing in one bin and added in the other.
    """
    below = np.r_[0.0, np.cumsum(tally.mass)]
    goals = np.arange(1, n_bins) * below[-1] / n_bins
    cell = np.searchsorted(below, goals, side="left") - 1  # the cell that holds each border
    cut = np.unique(cell[(below[cell + 1] > goals) & _mixed(tally)[cell]])
    return float(2.0 * np.maximum(*_one_sided(tally))[cut].sum() / tally.total)


def running_bound(tally: Tally) -> float:
    """Bound for KS: between a cell's ends the running sum can leave the line by its own parts."""
    away = np.where(_mixed(tally), np.minimum(*_one_sided(tally)), 0.0)
    return float(away.max() / tally.total)


def smooth_bound(tally: Tally, sigma: float) -> float:
    r"""Bound for smooth ECE: rows lie at most a cell's width from where they are counted.

    Two Gaussian kernels a distance d apart differ by at most :math:`d\sqrt{2/\pi}/\sigma` in L1.
    """
    up, down = _one_sided(tally)
    width = tally.score * (1.0 - tally.score) * CELL_LOG_ODDS
    moved = np.where(_mixed(tally), (up + down) * width, 0.0).sum() / tally.total
    return float(moved * np.sqrt(2.0 / np.pi) / sigma)


def auroc_bound(tally: Tally) -> float:
    """Bound for AUROC: pairs inside one cell count half, and could count 0 or 1."""
    negatives, positives = tally.weight.sum(axis=0)
    if not _ranked(tally):
        return 0.0
    inside = (tally.weight[:, 0] * tally.weight[:, 1])[_mixed(tally)].sum()
    return float(inside / (2.0 * negatives * positives))


def auprc_bound(tally: Tally) -> float:
    """Bound for average precision: events first or last inside every cell."""
    from scipy.special import digamma

    if not _ranked(tally):
        return 0.0
    mixed = _mixed(tally)[::-1]
    hits, misses = tally.hits[::-1], tally.weight[:, 0][::-1]
    right = np.cumsum(hits) - hits  # strictly above each cell, from the top
    kept = np.cumsum(hits + misses) - hits - misses

    def total_precision(ahead: FloatArray) -> FloatArray:
        # The sum over j = 1..h of (right + j)/(ahead + j) in closed form.
        return np.asarray(
            hits + (right - ahead) * (digamma(ahead + hits + 1.0) - digamma(ahead + 1.0))
        )

    spread = total_precision(kept) - total_precision(kept + misses)
    return float(spread[mixed].sum() / hits.sum())


def aurc_bound(tally: Tally) -> float:
    """Bound for AURC: errors last or first inside every cell, by splitting each cell in two."""
    best, worst = (aurc_influence(_ordered(tally, order))[0] for order in ((0, 1), (1, 0)))
    return worst - best


def _ordered(tally: Tally, order: tuple[int, int]) -> Tally:
    """Split each mixed cell into its non-events and its events, in the given ascending order."""
    keep = ~_mixed(tally)

    def split(part: FloatArray) -> FloatArray:
        out = np.zeros((2 * len(part), 2))
        out[0::2][keep] = part[keep]
        for place, column in enumerate(order):
            out[place::2, column][~keep] = part[~keep, column]
        return out

    count, weight, square = (split(part) for part in (tally.count, tally.weight, tally.square))
    filled = count.any(axis=1)
    return Tally(np.repeat(tally.score, 2)[filled], count[filled], weight[filled], square[filled])


def _one_sided(tally: Tally) -> tuple[FloatArray, FloatArray]:
    """Return what a cell's events alone, and its non-events alone, add to the residual."""
    return tally.weight[:, 1] * (1.0 - tally.score), tally.weight[:, 0] * tally.score


def _mixed(tally: Tally) -> NDArray[np.bool_]:
    return np.zeros(len(tally.score), dtype=bool) if tally.mixed is None else tally.mixed


def _ranked(tally: Tally) -> bool:
    negatives, positives = tally.weight.sum(axis=0)
    return bool(negatives > 0 and positives > 0)
