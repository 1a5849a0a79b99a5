"""Proper scores: negative log-likelihood and Brier, with their decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.inputs import FloatArray, Scored, as_scored
from calibrant.metrics.problem import in_threads

__all__ = ["brier", "nll"]


def nll(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> float:
    r"""Negative log-likelihood, :math:`-\frac{1}{N}\sum_i \log p_{i, y_i}`, in nats.

    A row whose true class got probability 0 makes it infinite; nothing is clipped. It is proper:
    honest probabilities minimise it. It is not the loss a model was trained with, unless that
    was plain cross-entropy.

    Examples
    --------
    >>> round(nll([0, 1], [0.5, 0.8]), 4)
    0.4581
    """
    scored = as_scored(labels, probs, weights=weights, classes=classes)
    return float(np.average(row_nll(scored), weights=scored.weights))


def brier(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> float:
    r"""Brier score: mean squared error of the probabilities.

    .. math:: \frac{1}{N}\sum_i (p_i - y_i)^2 \;\text{(two classes)}, \qquad
              \frac{1}{N}\sum_i \sum_k (p_{ik} - 1[y_i = k])^2 \;\text{(more)}

    For two classes it is the usual score between 0 and 1 of P(positive), half of what the sum
    over both classes would give.

    Examples
    --------
    >>> round(brier([0, 1], [0.5, 0.8]), 4)
    0.145
    >>> round(brier([0, 2], [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]), 4)
    0.25
    """
    scored = as_scored(labels, probs, weights=weights, classes=classes)
    return float(np.average(row_brier(scored), weights=scored.weights))


def row_nll(scored: Scored) -> FloatArray:
    """Return -log of the probability each row gave to its label; inf where that was 0."""
    if scored.probs.ndim == 1:
        p = scored.probs.astype(np.float64, copy=False)
        given = np.where(scored.labels == 1, p, 1.0 - p)
    else:
        given = scored.probs[np.arange(scored.n), scored.labels].astype(np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(given))


def row_brier(scored: Scored) -> FloatArray:
    """Return the squared error of each row."""
    if scored.binary:
        positive = scored.positive.astype(np.float64, copy=False)
        return np.asarray((positive - scored.labels) ** 2)
    out = np.empty(scored.n)

    def work(rows: slice) -> None:
        wide = scored.probs[rows].astype(np.float64, copy=False)
        given = wide[np.arange(len(wide)), scored.labels[rows]]
        out[rows] = np.einsum("ij,ij->i", wide, wide) + 1.0 - 2.0 * given

    in_threads(work, scored.n, costly=scored.probs.size > 1 << 20)
    return out
