"""Debiased expected calibration error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.inputs import FloatArray, Target, as_scored_rows
from calibrant.metrics.binning import Scheme, check_bins, mass_edges, width_edges
from calibrant.metrics.problem import tally_target
from calibrant.metrics.tally import Tally


def ece_debiased(
    labels: Any,
    probs: Any,
    *,
    n_bins: int = 15,
    scheme: Scheme = "mass",
    target: Target | None = None,
    weights: Any = None,
    classes: Sequence[Any] | None = None,
) -> float:
    r"""Debiased root-mean-square calibration error: the expected sampling noise is subtracted.

    .. math:: \sqrt{\max\Big(0, \sum_b w_b\Big[(\bar y_b - \bar s_b)^2
              - \frac{\bar y_b(1-\bar y_b)}{n_b - 1}\Big]\Big)}

    with :math:`w_b` the share of bin b, :math:`\bar y_b` its share of events, :math:`\bar s_b`
    its mean score and :math:`n_b` its number of rows (with weights: Kish's effective number). Bins
    with fewer than two rows contribute nothing. It is an L2 error, not comparable with an L1 one.

    Examples
    --------
    Half of (0.1333^2 - 0.1111) and half of (0.4^2 - 0), then the root:

    >>> round(ece_debiased([0, 0, 1, 1, 1, 1], [.2, .2, .2, .6, .6, .6], n_bins=2), 4)
    0.1826

    References
    ----------
    Kumar, Liang & Ma (2019), NeurIPS, section 5.
    """
    check_bins(n_bins, scheme, 2)
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    tally = tally_target(scored, target)
    edges = (
        width_edges(n_bins) if scheme == "width" else mass_edges(tally.score, tally.mass, n_bins)
    )
    return float(np.sqrt(max(0.0, debiased_square(tally, edges))))


def debiased_square(tally: Tally, edges: FloatArray) -> float:
    """Return the debiased squared error; negative if noise exceeds the observed error."""
    mass, hits = tally.per_bin(edges, tally.mass), tally.per_bin(edges, tally.hits)
    gap = tally.per_bin(edges, tally.residual)
    square = tally.per_bin(edges, tally.spread)
    rows = mass**2 / np.where(square > 0, square, 1.0)
    counts = rows > 1.0 + 1e-9
    share, rate = mass[counts] / tally.total, hits[counts] / mass[counts]
    event_square = tally.per_bin(edges, tally.square[:, 1])
    noise = rate_noise(mass[counts], rate, square[counts], event_square[counts])
    chance = noise * rows[counts] / (rows[counts] - 1.0)
    return float(((gap[counts] ** 2) / share - share * chance).sum())


def rate_noise(
    mass: FloatArray, rate: FloatArray, square: FloatArray, event_square: FloatArray
) -> FloatArray:
    r"""Return the variance of the event rate of each bin, without small-sample correction.

    .. math:: \frac{\sum_i w_i^2 (y_i - r)^2}{(\sum_i w_i)^2}

    With equal weights it is r (1 - r) / n; in general weights may depend on the event.
    """
    return np.asarray(
        (event_square * (1.0 - rate) ** 2 + (square - event_square) * rate**2) / mass**2
    )
