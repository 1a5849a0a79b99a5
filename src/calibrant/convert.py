"""Conversions between logits and probabilities, in numerically stable log form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError

FloatArray = NDArray[np.float64]


def probs_from_logits(logits: FloatArray) -> FloatArray:
    r"""Convert logits to probabilities: the logistic function for (n,), softmax for (n, K).

    .. math:: p = 1 / (1 + e^{-z}), \qquad p_k = e^{z_k} / \sum_j e^{z_j}
    """
    return np.exp(log_probs_from_logits(logits))


def log_probs_from_logits(logits: FloatArray) -> FloatArray:
    """Convert logits to log-probabilities without overflow or underflow."""
    if logits.ndim == 1:
        return log_sigmoid(logits)
    shifted = logits - logits.max(axis=1, keepdims=True)
    out: FloatArray = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return out


def log_odds_from_logits(logits: FloatArray) -> FloatArray:
    r"""Convert logits to the log-odds of each class against the rest.

    .. math:: z_k - \log \sum_{j \neq k} e^{z_j}

    For two classes the result is one number per row, the log-odds of the second class: (n,) is
    returned unchanged, (n, 2) becomes (n,), and (n, K) stays (n, K). No precision is lost when a
    probability rounds to 1, because the sum over the other classes leaves out the largest. The
    result is bit-identical under any order of the classes.
    """
    if logits.ndim == 1:
        return logits
    if logits.shape[1] == 2:
        return np.asarray(logits[:, 1] - logits[:, 0])
    below = logits - logits.max(axis=1, keepdims=True)
    others = below.copy()
    others[np.arange(len(logits)), logits.argmax(axis=1)] = -np.inf
    second = others.max(axis=1)
    rest = second + np.log(_sum_in_any_order(np.exp(others - second[:, None])))
    log_probs = below - np.logaddexp(rest, 0.0)[:, None]
    top = below == 0
    # All but the top class have p <= 1/2, where log(1 - p) is accurate.
    odds = log_probs - np.log1p(-np.exp(np.where(top, -np.inf, log_probs)))
    return np.asarray(np.where(top, -rest[:, None], odds))


def _sum_in_any_order(parts: FloatArray) -> FloatArray:
    """Sum numbers in [0, 1] in fixed point, so that the result does not depend on their order.

    Float sums can differ in the last digit, which would break ties between equal rows or classes.
    """
    scale = 2.0 ** min(52, 62 - parts.shape[1].bit_length())
    return np.asarray(np.rint(parts * scale).astype(np.int64).sum(axis=1) / scale)


def logits_from_probs(probs: FloatArray, *, floor: float = 0.0) -> FloatArray:
    """Convert probabilities to logits: log-odds for (n,), log-probabilities for (n, K).

    Probabilities of exactly 0 and 1 become infinite. Pass `floor` to clip probabilities from below
    when finite logits are needed.
    """
    with np.errstate(divide="ignore"):
        if probs.ndim == 1:
            odds = np.log(np.maximum(probs, floor)) - np.log(np.maximum(1.0 - probs, floor))
            return np.asarray(odds)
        return np.asarray(np.log(np.maximum(probs, floor)))


def log_sigmoid(odds: FloatArray) -> FloatArray:
    """Return log(1 / (1 + exp(-odds))) elementwise, for any shape and for infinite values."""
    return np.asarray(-np.logaddexp(0.0, -odds))


def log_odds_of(probs: FloatArray) -> FloatArray:
    """Return the log-odds elementwise, for any shape; infinite at exactly 0 and 1."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probs) - np.log1p(-probs))


def ensemble_logits(member_logits: Sequence[FloatArray]) -> FloatArray:
    r"""Return the logits of an ensemble from the logits of its members.

    $$ z = \log \frac{1}{M} \sum_m \mathrm{softmax}(z_m)
        + \frac{1}{M} \sum_m \log \sum_k e^{z_{mk}} $$

    $z_m$ are the logits of member $m$ of $M$. The softmax of the result is the mean of the members'
    probabilities, because the second term is the same for all classes. Its log-sum-exp is the mean
    of the members', because that of log-probabilities is 0, so scores computed from it, such as the
    energy, keep their meaning. `calibrant.models.Ensemble` is the torch equivalent.

    This is not the mean of the logits, with which one confident member outvotes many unsure ones.

    Examples
    --------
    >>> first, second = np.log([[0.9, 0.1]]), np.log([[0.5, 0.5]])
    >>> np.exp(ensemble_logits([first, second])).round(4)
    array([[0.7, 0.3]])
    >>> ensemble_logits([first + 2.0, second]).round(4)  # log-sum-exp of 2 and 0
    array([[ 0.6433, -0.204 ]])

    References
    ----------
    Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation using deep
    ensembles, for the mean of the probabilities.
    """
    members = [np.asarray(logits, dtype=np.float64) for logits in member_logits]
    if not members:
        raise InputError("member_logits must contain the logits of at least one member, got none.")
    shapes = list(dict.fromkeys(member.shape for member in members))
    if len(shapes) > 1 or len(shapes[0]) not in (1, 2):
        raise InputError(
            "member_logits must all have the same shape, (n, K) or (n,), "
            f"got {' and '.join(str(shape) for shape in shapes[:2])}."
        )
    logits = np.stack(members)
    if logits.ndim == 2:
        return _mean_exp(log_sigmoid(logits)) - _mean_exp(log_sigmoid(-logits))
    top = logits.max(axis=2, keepdims=True)
    rest = np.log(np.exp(logits - top).sum(axis=2, keepdims=True))
    out: FloatArray = _mean_exp(logits - top - rest) + (top + rest).mean(axis=0)
    return out


def _mean_exp(logs: FloatArray) -> FloatArray:
    """Return the log of the mean of exp(logs) over the members, for infinite values too."""
    return np.asarray(np.logaddexp.reduce(logs, axis=0) - np.log(len(logs)))
