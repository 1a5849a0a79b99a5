"""Data of Figures 3 to 6 of the return-reason paper."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray
from calibrant.metrics.binning import bin_index, width_edges

__all__ = ["BINS", "reliability_of", "score_counts", "threshold_curves"]

BINS = 10
"""Of a reliability diagram, as in the paper."""

_CELLS = 20
_STEPS = 50


def reliability_of(labels: IntArray, probs: FloatArray) -> dict[str, list[Any]]:
    """Return rows, mean confidence and accuracy of each bin of confidence (Figures 3 and 4).

    Bins are equally wide; a bin without rows has None. ECE is the mean of the gaps weighted by
    rows, MCE the largest of them, whatever its rows.

    Parameters
    ----------
    labels : (n,) classes as numbers
    probs : (n, K)

    Examples
    --------
    >>> found = reliability_of(np.array([0, 0, 1]), np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3]]))
    >>> found["rows"][5:], found["accuracy"][5:]
    ([0, 1, 1, 0, 1], [None, 1.0, 0.0, None, 1.0])
    """
    top = probs.argmax(axis=1)
    confidence = probs[np.arange(len(probs)), top]
    place = bin_index(confidence, width_edges(BINS))
    rows = np.bincount(place, minlength=BINS)
    sums = {"confidence": confidence, "accuracy": (top == labels).astype(np.float64)}
    means = {
        name: _shares(np.bincount(place, values, minlength=BINS), rows)
        for name, values in sums.items()
    }
    return {"rows": rows.tolist(), **means}


def score_counts(scores: FloatArray) -> list[int]:
    """Count probabilities in 20 equally wide cells: spiky or flat, as in the top of Figure 3.

    Examples
    --------
    >>> score_counts(np.array([0.01, 0.02, 0.99]))[:2]
    [2, 0]
    """
    cells = bin_index(scores, width_edges(_CELLS))
    return [int(count) for count in np.bincount(cells, minlength=_CELLS)]


def threshold_curves(events: NDArray[np.bool_], scores: FloatArray) -> dict[str, list[Any]]:
    """Return precision and recall at thresholds 0, 0.02, ..., 1 (Figures 5 and 6).

    Precision is None where no row reaches the threshold.

    Parameters
    ----------
    events : (n,) whether a row is of the class looked for
    scores : (n,) the probability of that class

    Examples
    --------
    >>> found = threshold_curves(np.array([False, True, True]), np.array([0.2, 0.6, 0.9]))
    >>> found["threshold"][25], found["precision"][0], found["precision"][25], found["recall"][40]
    (0.5, 0.6666666666666666, 1.0, 0.5)
    """
    order = np.argsort(-scores, kind="stable")
    thresholds = np.arange(_STEPS + 1) / _STEPS
    acted = np.searchsorted(-scores[order], -thresholds, side="right")
    hits = np.concatenate([[0], events[order].cumsum()])[acted]
    return {
        "threshold": thresholds.tolist(),
        "precision": _shares(hits, acted),
        "recall": _shares(hits, np.full(len(hits), events.sum())),
    }


def _shares(part: NDArray[Any], whole: NDArray[Any]) -> list[float | None]:
    return [float(a) / float(b) if b else None for a, b in zip(part, whole, strict=True)]
