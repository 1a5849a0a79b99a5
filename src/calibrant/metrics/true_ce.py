"""True calibration error, for data with a known posterior."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, as_probs
from calibrant.inputs.arrays import column_names, order_columns
from calibrant.metrics.binning import bin_index, check_bins, mass_edges


def true_ce(posterior: Any, probs: Any, *, n_bins: int = 100) -> float:
    r"""Calibration error of the predicted class against the true posterior instead of labels.

    .. math:: E\,\big|c - E[\eta_{\hat y} \mid c]\big|
       \approx \frac{1}{N} \sum_b \Big|\sum_{i \in b} (c_i - \eta_{i \hat y_i})\Big|

    :math:`\hat y` is the class with the largest probability (the first on ties; of two classes the
    positive one from 0.5 on), c that probability and :math:`\eta_{\hat y}` the true posterior of
    that class. The inner mean is over equal-mass bins b of c, with tied confidences in the same
    bin. Labels are not used, so there is no floor from label noise.

    It is not the mean distance between probabilities and posterior: a model that predicts the base
    rate for every row is perfectly calibrated. With few rows per bin it approaches that distance,
    so use at least a thousand rows per bin.

    Parameters
    ----------
    posterior : the true P(y | x): (n,) of the positive class, or (n, K)
    probs : the model's probabilities, of the same shape as `posterior`
    n_bins : number of bins

    Examples
    --------
    Confidence 0.9 in both rows, with a mean posterior of 0.7:

    >>> round(true_ce([[0.8, 0.2], [0.4, 0.6]], [[0.9, 0.1], [0.1, 0.9]]), 4)
    0.2

    A constant model that predicts the base rate:

    >>> true_ce([[1.0, 0.0], [0.5, 0.5]], [[0.75, 0.25], [0.75, 0.25]])
    0.0

    References
    ----------
    Kumar, Liang, Ma (2019), NeurIPS, definition 2.1, with exponent 1.
    """
    truth = as_probs(posterior, name="posterior")
    predicted = as_probs(probs)
    names = column_names(posterior)
    if names is not None and set(names) == set(column_names(probs) or ()):
        predicted, _ = order_columns(predicted, probs, classes=names)
    if truth.shape != predicted.shape:
        raise InputError(
            f"posterior and probs must have the same shape, got {truth.shape} and "
            f"{predicted.shape}: pass both as (n,) P(positive), or both as (n, K)."
        )
    check_bins(n_bins, "mass", 1)
    conf, eta = _predicted_class(truth.astype(np.float64), predicted.astype(np.float64))
    bins = bin_index(conf, mass_edges(np.sort(conf), None, n_bins))
    # The share of a bin times the gap of its means equals the gap of its sums over n.
    gaps = np.bincount(bins, weights=conf - eta)
    return float(np.abs(gaps).sum()) / len(conf)


def _predicted_class(truth: FloatArray, predicted: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the confidence and the true posterior of the predicted class."""
    if predicted.ndim == 2:
        rows, top = np.arange(len(predicted)), predicted.argmax(axis=1)
        return predicted[rows, top], truth[rows, top]
    up = predicted >= 0.5
    return np.where(up, predicted, 1.0 - predicted), np.where(up, truth, 1.0 - truth)
