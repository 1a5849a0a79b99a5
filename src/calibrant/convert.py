"""The only conversion between logits and probabilities, in stable log forms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["log_probs_from_logits", "logits_from_probs", "probs_from_logits"]

FloatArray = NDArray[np.float64]


def probs_from_logits(logits: FloatArray) -> FloatArray:
    r"""Turn logits into probabilities: the logistic function for (n,), softmax for (n, K).

    .. math:: p = 1 / (1 + e^{-z}), \qquad p_k = e^{z_k} / \sum_j e^{z_j}

    Examples
    --------
    >>> probs_from_logits(np.array([0.0, 800.0]))
    array([0.5, 1. ])
    >>> probs_from_logits(np.array([[0.0, 0.0], [1000.0, 0.0]]))
    array([[0.5, 0.5], [1. , 0. ]])
    """
    return np.exp(log_probs_from_logits(logits))


def log_probs_from_logits(logits: FloatArray) -> FloatArray:
    """Log-probabilities without forming the probabilities: nothing overflows or becomes 0."""
    if logits.ndim == 1:
        return -np.logaddexp(0.0, -logits)
    shifted = logits - logits.max(axis=1, keepdims=True)
    out: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return out


def logits_from_probs(probs: FloatArray) -> FloatArray:
    """Turn probabilities into logits: log-odds for (n,), log-probabilities for (n, K).

    Exact 0 and 1 become infinite: information that a file has lost is not made up.

    Examples
    --------
    >>> logits_from_probs(np.array([0.5, 1.0]))
    array([ 0., inf])
    """
    with np.errstate(divide="ignore"):
        if probs.ndim == 1:
            return np.asarray(np.log(probs) - np.log1p(-probs))
        return np.asarray(np.log(probs))
