"""True calibration error, where the posterior of every row is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, as_probs
from calibrant.inputs.class_columns import column_names, in_class_order
from calibrant.metrics.binning import bin_index, check_bins, mass_edges

__all__ = ["true_ce"]


def true_ce(posterior: Any, probs: Any, *, n_bins: int = 100) -> float:
    r"""Calibration error of the predicted class, held against the truth instead of labels.

    .. math:: E\,\big|c - E[\eta_{\hat y} \mid c]\big|
       \approx \frac{1}{N} \sum_b \Big|\sum_{i \in b} (c_i - \eta_{i \hat y_i})\Big|

    :math:`\hat y` is the class with the largest probability (the first of equals; of two classes
    the positive one from 0.5 on), c that probability and :math:`\eta_{\hat y}` the true posterior
    of that class. The inner mean is taken over bins b of c with equal mass, equal confidences kept
    together. Labels play no part, so there is no floor from their noise.

    It is not the mean distance between probabilities and posterior: a model that gives every row
    the base rate is perfectly calibrated. With few rows in a bin it comes close to that distance,
    so take at least a thousand rows for each bin.

    Parameters
    ----------
    posterior : the true P(y | x): (n,) of the positive class, or (n, K)
    probs : the model's probabilities, in the shape of `posterior`
    n_bins : number of bins

    Examples
    --------
    Confidence 0.9 in both rows, and the class is there in 0.7 of such rows:

    >>> round(true_ce([[0.8, 0.2], [0.4, 0.6]], [[0.9, 0.1], [0.1, 0.9]]), 4)
    0.2

    A constant model that knows the base rate:

    >>> true_ce([[1.0, 0.0], [0.5, 0.5]], [[0.75, 0.25], [0.75, 0.25]])
    0.0

    References
    ----------
    Kumar, Liang, Ma (2019), NeurIPS, definition 2.1, with exponent 1.
    """
    truth = as_probs(posterior, name="posterior")
    given = as_probs(probs)
    names = column_names(posterior)
    if names is not None and set(names) == set(column_names(probs) or ()):
        given, _ = in_class_order(given, probs, classes=names)
    if truth.shape != given.shape:
        raise InputError(
            f"posterior and probs must have the same shape, got {truth.shape} and {given.shape}: "
            "give both as (n,) P(positive), or both as (n, K)."
        )
    check_bins(n_bins, "mass", 1)
    conf, eta = _spoken_of(truth.astype(np.float64), given.astype(np.float64))
    bins = bin_index(conf, mass_edges(np.sort(conf), None, n_bins))
    # Sums, not means: a bin's share times the gap of its means is the gap of its sums over n.
    gaps = np.bincount(bins, weights=conf - eta)
    return float(np.abs(gaps).sum()) / len(conf)


def _spoken_of(truth: FloatArray, given: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the confidence and the true posterior of the class that it speaks of."""
    if given.ndim == 2:
        rows, top = np.arange(len(given)), given.argmax(axis=1)
        return given[rows, top], truth[rows, top]
    up = given >= 0.5
    return np.where(up, given, 1.0 - given), np.where(up, truth, 1.0 - truth)
