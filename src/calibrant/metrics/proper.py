"""Proper scores: negative log-likelihood and Brier score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.inputs import FloatArray, ScoredRows, as_scored_rows
from calibrant.metrics.problem import map_blocks


def nll(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> float:
    r"""Negative log-likelihood, :math:`-\frac{1}{N}\sum_i \log p_{i, y_i}`, in nats.

    A row whose label has probability 0 makes it infinite; nothing is clipped. It is a proper score:
    the true probabilities minimise it. It is not the training loss, unless that was plain
    cross-entropy.

    Examples
    --------
    >>> round(nll([0, 1], [0.5, 0.8]), 4)
    0.4581
    """
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    return float(np.average(row_nll(scored), weights=scored.weights))


def brier(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> float:
    r"""Brier score: mean squared error of the probabilities.

    .. math:: \frac{1}{N}\sum_i (p_i - y_i)^2 \;\text{(two classes)}, \qquad
              \frac{1}{N}\sum_i \sum_k (p_{ik} - 1[y_i = k])^2 \;\text{(more)}

    For two classes it is the usual score of P(positive), between 0 and 1, which is half the sum
    over both classes.

    Examples
    --------
    >>> round(brier([0, 1], [0.5, 0.8]), 4)
    0.145
    >>> round(brier([0, 2], [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]), 4)
    0.25
    """
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    return float(np.average(row_brier(scored), weights=scored.weights))


def row_nll(scored: ScoredRows) -> FloatArray:
    """Return -log of the probability of the label of each row; inf if it is 0."""
    if scored.probs.ndim == 1:
        p = scored.probs.astype(np.float64, copy=False)
        label_probs = np.where(scored.labels == 1, p, 1.0 - p)
    else:
        label_probs = scored.probs[np.arange(scored.n), scored.labels].astype(np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(label_probs))


def row_brier(scored: ScoredRows) -> FloatArray:
    """Return the squared error of each row."""
    if scored.binary:
        positive = scored.positive.astype(np.float64, copy=False)
        return np.asarray((positive - scored.labels) ** 2)
    out = np.empty(scored.n)

    def work(rows: slice) -> None:
        wide = scored.probs[rows].astype(np.float64, copy=False)
        label_probs = wide[np.arange(len(wide)), scored.labels[rows]]
        out[rows] = np.einsum("ij,ij->i", wide, wide) + 1.0 - 2.0 * label_probs

    map_blocks(work, scored.n, costly=scored.probs.size > 1 << 20)
    return out
