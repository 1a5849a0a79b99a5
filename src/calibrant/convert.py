"""The only conversion between logits and probabilities, in stable log forms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "log_odds_from_logits",
    "log_odds_of",
    "log_probs_from_logits",
    "log_sigmoid",
    "logits_from_probs",
    "probs_from_logits",
]

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
        return log_sigmoid(logits)
    shifted = logits - logits.max(axis=1, keepdims=True)
    out: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return out


def log_odds_from_logits(logits: FloatArray) -> FloatArray:
    r"""Turn logits into log-odds of each class against the rest.

    .. math:: z_k - \log \sum_{j \neq k} e^{z_j}

    Two classes have one number, the log-odds of the second: (n,) stays, (n, 2) becomes (n,), and
    (n, K) stays (n, K). Nothing is lost where a probability rounds to 1: the sum over the other
    classes is formed without the largest.

    Examples
    --------
    >>> log_odds_from_logits(np.array([[0.0, 2.0], [100.0, 0.0]]))
    array([   2., -100.])
    >>> log_odds_from_logits(np.array([[0.0, 0.0, 100.0]])).round(4)
    array([[-100.    , -100.    ,   99.3069]])
    """
    if logits.ndim == 1:
        return logits
    if logits.shape[1] == 2:
        return np.asarray(logits[:, 1] - logits[:, 0])
    log_probs = log_probs_from_logits(logits)
    rows, top = np.arange(len(logits)), logits.argmax(axis=1)
    out: FloatArray = log_probs.copy()
    log_probs[rows, top] = -np.inf
    # All but the top class have p <= 1/2, where log(1 - p) is accurate.
    out -= np.log1p(-np.exp(log_probs))
    others = log_probs.max(axis=1)
    rest = others + np.log(np.exp(log_probs - others[:, None]).sum(axis=1))
    out[rows, top] -= rest
    return out


def logits_from_probs(probs: FloatArray, *, floor: float = 0.0) -> FloatArray:
    """Turn probabilities into logits: log-odds for (n,), log-probabilities for (n, K).

    Exact 0 and 1 become infinite: information that a file has lost is not made up. Where finite
    numbers are needed, name a `floor`: no probability counts as smaller.

    Examples
    --------
    >>> logits_from_probs(np.array([0.5, 1.0]))
    array([ 0., inf])
    >>> logits_from_probs(np.array([0.5, 1.0]), floor=1e-12).round(2)
    array([ 0.  , 27.63])
    """
    with np.errstate(divide="ignore"):
        if probs.ndim == 1:
            odds = np.log(np.maximum(probs, floor)) - np.log(np.maximum(1.0 - probs, floor))
            return np.asarray(odds)
        return np.asarray(np.log(np.maximum(probs, floor)))


def log_sigmoid(odds: FloatArray) -> FloatArray:
    """Return log(1 / (1 + exp(-odds))) of each number, whatever the shape, infinite ones included.

    Examples
    --------
    >>> log_sigmoid(np.array([-800.0, np.inf]))
    array([-800.,   -0.])
    """
    return np.asarray(-np.logaddexp(0.0, -odds))


def log_odds_of(probs: FloatArray) -> FloatArray:
    """Return the log-odds of each number, whatever the shape; infinite for exactly 0 and 1.

    Examples
    --------
    >>> log_odds_of(np.array([[0.5, 1.0]]))
    array([[ 0., inf]])
    """
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probs) - np.log1p(-probs))
