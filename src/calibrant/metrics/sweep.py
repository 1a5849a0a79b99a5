"""Sweep calibration error: as many bins as the event rate stays in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.inputs import FloatArray, Target, as_scored
from calibrant.metrics.binning import HAIR, Scheme, check_bins, mass_edges, width_edges
from calibrant.metrics.problem import one_tally
from calibrant.metrics.seminorms import binned_size
from calibrant.metrics.tally import Tally

__all__ = ["MAX_BINS", "ece_sweep", "sweep_edges", "sweeps"]

MAX_BINS = 4096
"""The sweep stops here at the latest; chance breaks the order long before on real data."""


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
    """ECE with the largest number of bins before event rates stop rising with the score.

    Bins grow from 2 by one at a time. The first number at which a bin's event rate is strictly
    below that of the bin before it ends the sweep, and the number before it is used (1 if two
    bins already break the order; at most n - 1 and `MAX_BINS`). A larger number may be in order
    again, so the sweep cannot be shortened by bisection. Where the event rate never falls from
    one distinct score to the next, every number is in order and each score is its own bin.

    The reference code's default is `norm=2`; here it is 1, to be read beside other ECEs.

    Examples
    --------
    Three bins do not fall (1/2, 1/2, 1), four do (1/2, 0, ...), so three are used.

    >>> round(ece_sweep([0, 1, 0, 1, 1, 1], [.1, .2, .3, .6, .7, .9]), 4)
    0.2

    References
    ----------
    Roelofs et al. (2022), AISTATS, section 4.
    """
    check_bins(1, scheme, norm)
    scored = as_scored(labels, probs, weights=weights, classes=classes)
    tally = one_tally(scored, target)
    return float(binned_size(tally, sweep_edges(tally, scheme), norm)(tally.residual))


def sweep_edges(tally: Tally, scheme: Scheme) -> FloatArray:
    """Return the edges at which the sweep ends."""
    return sweeps([tally], scheme)[0]


def sweeps(tallies: Sequence[Tally], scheme: Scheme) -> list[FloatArray]:
    """Return the edges at which each sweep ends, of tallies that differ in their events alone.

    They are swept together: a number of bins begins at the same scores in all of them.
    """
    first = tallies[0]
    hits, mass = (np.stack(part) for part in zip(*((t.hits, t.mass) for t in tallies), strict=True))
    going = np.flatnonzero(_falls(hits, mass))  # in all others each distinct score is a bin
    bins = np.zeros(len(tallies), dtype=np.int64)
    bins[going] = 1
    below, came = (_running(part[going]) for part in (mass, hits))
    for count in range(2, min(MAX_BINS, first.n - 1) + 1):
        if not len(going):
            break
        starts = _starts(first, below[0], count, scheme)
        kept = ~_falls(np.diff(came[:, starts]), np.diff(below[:, starts]))
        if not kept.all():
            going, below, came = going[kept], below[kept], came[kept]
        bins[going] = count
    edges = {count: _edges(first, count, scheme) for count in set(bins.tolist())}
    return [edges[count] for count in bins.tolist()]


def _running(values: FloatArray) -> FloatArray:
    return np.pad(np.cumsum(values, axis=1), ((0, 0), (1, 0)))


def _edges(tally: Tally, bins: int, scheme: Scheme) -> FloatArray:
    if not bins:
        return np.concatenate([[0.0], tally.score[1:], [1.0]])
    return width_edges(bins) if scheme == "width" else mass_edges(tally.score, tally.mass, bins)


def _starts(tally: Tally, below: FloatArray, bins: int, scheme: Scheme) -> Any:
    """Return where each of the bins begins among the sorted scores, and the end."""
    if scheme == "width":
        return tally.starts(width_edges(bins))
    # The first score with floor(bins * below / W) >= j, as in mass_edges.
    goal = np.arange(1, bins) - HAIR
    inner = np.searchsorted(below[:-1] * (bins / below[-1]), goal, side="left")
    return np.concatenate([[0], inner, [len(tally.score)]])


def _falls(hits: FloatArray, mass: FloatArray) -> Any:
    """Whether the event rate of a non-empty bin is strictly below the one before it: (D,)."""
    filled = mass > 0
    some = filled.any(axis=0)
    if not filled[:, some].all():  # a mass so small that rounding decides
        rows = zip(hits[:, None], mass[:, None], strict=True)
        return np.concatenate([_falls(*row) for row in rows])
    rate = hits[:, some] / mass[:, some]
    return (rate[:, 1:] < rate[:, :-1]).any(axis=1)
