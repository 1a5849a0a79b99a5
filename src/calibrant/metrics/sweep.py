"""Sweep calibration error: the largest number of bins with monotone event rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.inputs import FloatArray, Target, as_scored_rows
from calibrant.metrics.binning import MASS_TOLERANCE, Scheme, check_bins, mass_edges, width_edges
from calibrant.metrics.problem import tally_target
from calibrant.metrics.seminorms import binned_size
from calibrant.metrics.tally import Tally

MAX_BINS = 4096  # Limit of the sweep; on real data noise breaks monotonicity long before


def ece_sweep(
    labels: Any,
    probs: Any,
    *,
    scheme: Scheme = "mass",
    norm: float = 1,
    target: Target | None = None,
    weights: Any = None,
    classes: Sequence[Any] | None = None,
) -> float:
    """ECE with the largest number of bins for which event rates increase with the score.

    The number of bins grows from 2 in steps of one. The sweep ends at the first number for which
    the event rate of a bin is strictly below that of the previous one, and the number before it is
    used (1 if two bins are not monotone; at most n - 1 and `MAX_BINS`). A larger number may be
    monotone again, so bisection is not possible. If the event rate never decreases from one
    distinct score to the next, each score is its own bin.

    The default of the reference implementation is `norm=2`; here it is 1, comparable with other
    ECEs.

    Examples
    --------
    Three bins are monotone (1/2, 1/2, 1), four are not (1/2, 0, ...), so three are used.

    >>> round(ece_sweep([0, 1, 0, 1, 1, 1], [.1, .2, .3, .6, .7, .9]), 4)
    0.2

    References
    ----------
    Roelofs et al. (2022), AISTATS, section 4.
    """
    check_bins(1, scheme, norm)
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    tally = tally_target(scored, target)
    return float(binned_size(tally, sweep_edges(tally, scheme), norm)(tally.residual))


def sweep_edges(tally: Tally, scheme: Scheme) -> FloatArray:
    """Return the edges of the bins that the sweep chooses."""
    return all_sweep_edges([tally], scheme)[0]


def all_sweep_edges(tallies: Sequence[Tally], scheme: Scheme) -> list[FloatArray]:
    """Return the edges of the sweeps of several tallies that differ only in their events.

    They are swept together, because bins start at the same scores in all of them.
    """
    first = tallies[0]
    hits, mass = (np.stack(part) for part in zip(*((t.hits, t.mass) for t in tallies), strict=True))
    active = np.flatnonzero(_decreases(hits, mass))  # in the others each distinct score is a bin
    bins = np.zeros(len(tallies), dtype=np.int64)
    bins[active] = 1
    below, events = (_running_sums(part[active]) for part in (mass, hits))
    for count in range(2, min(MAX_BINS, first.n - 1) + 1):
        if not len(active):
            break
        starts = _starts(first, below[0], count, scheme)
        monotone = ~_decreases(np.diff(events[:, starts]), np.diff(below[:, starts]))
        if not monotone.all():
            active, below, events = active[monotone], below[monotone], events[monotone]
        bins[active] = count
    edges = {count: _edges(first, count, scheme) for count in set(bins.tolist())}
    return [edges[count] for count in bins.tolist()]


def _running_sums(values: FloatArray) -> FloatArray:
    return np.pad(np.cumsum(values, axis=1), ((0, 0), (1, 0)))


def _edges(tally: Tally, bins: int, scheme: Scheme) -> FloatArray:
    if not bins:
        return np.concatenate([[0.0], tally.score[1:], [1.0]])
    return width_edges(bins) if scheme == "width" else mass_edges(tally.score, tally.mass, bins)


def _starts(tally: Tally, below: FloatArray, bins: int, scheme: Scheme) -> Any:
    """Return the start of each bin among the sorted scores, and the end."""
    if scheme == "width":
        return tally.starts(width_edges(bins))
    # The first score with floor(bins * below / W) >= j, as in mass_edges.
    goal = np.arange(1, bins) - MASS_TOLERANCE
    inner = np.searchsorted(below[:-1] * (bins / below[-1]), goal, side="left")
    return np.concatenate([[0], inner, [len(tally.score)]])


def _decreases(hits: FloatArray, mass: FloatArray) -> Any:
    """Return whether any event rate is strictly below that of the previous non-empty bin: (D,)."""
    filled = mass > 0
    some = filled.any(axis=0)
    if not filled[:, some].all():  # masses so small that rounding decides
        rows = zip(hits[:, None], mass[:, None], strict=True)
        return np.concatenate([_decreases(*row) for row in rows])
    rate = hits[:, some] / mass[:, some]
    return (rate[:, 1:] < rate[:, :-1]).any(axis=1)
