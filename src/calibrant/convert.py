"""The only conversion between logits and probabilities, in stable log forms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError

__all__ = [
    "ensemble_logits",
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
    classes is formed without the largest. The order of the classes does not matter, to the last
    digit.

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
    """Add numbers from 0 to 1 as whole numbers, whose sum does not depend on their order.

    Floats would differ in the last digit, and rows, or classes, that are alike would not tie.
    """
    scale = 2.0 ** min(52, 62 - parts.shape[1].bit_length())
    return np.asarray(np.rint(parts * scale).astype(np.int64).sum(axis=1) / scale)


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


def ensemble_logits(member_logits: Sequence[FloatArray]) -> FloatArray:
    r"""Return the logits of an ensemble, from those of its members.

    $$ z = \log \frac{1}{M} \sum_m \mathrm{softmax}(z_m)
        + \frac{1}{M} \sum_m \log \sum_k e^{z_{mk}} $$

    Their softmax is the mean of the members' probabilities, as the last part is one number for all
    classes; and the log of their summed exponentials is the mean of the members', as those of a log
    of probabilities are 0. So scores that are made of it, like the energy, keep their meaning.
    `calibrant.models.Ensemble` is the same in torch.

    It is not the mean of the logits, under which one sure member outvotes many unsure ones.

    Examples
    --------
    >>> one, other = np.log([[0.9, 0.1]]), np.log([[0.5, 0.5]])
    >>> np.exp(ensemble_logits([one, other])).round(4)
    array([[0.7, 0.3]])
    >>> ensemble_logits([one + 2.0, other]).round(4)  # summed exponentials of e^2 and 1
    array([[ 0.6433, -0.204 ]])

    References
    ----------
    Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation using deep
    ensembles, for the mean of the probabilities.
    """
    found = [np.asarray(each, dtype=np.float64) for each in member_logits]
    if not found:
        raise InputError("member_logits must hold the logits of at least one member, got none.")
    shapes = list(dict.fromkeys(each.shape for each in found))
    if len(shapes) > 1 or len(shapes[0]) not in (1, 2):
        raise InputError(
            "member_logits must all have one shape, (n, K) or (n,), "
            f"got {' and '.join(str(shape) for shape in shapes[:2])}."
        )
    logits = np.stack(found)
    if logits.ndim == 2:
        return _mean_exp(log_sigmoid(logits)) - _mean_exp(log_sigmoid(-logits))
    top = logits.max(axis=2, keepdims=True)
    rest = np.log(np.exp(logits - top).sum(axis=2, keepdims=True))
    out: FloatArray = _mean_exp(logits - top - rest) + (top + rest).mean(axis=0)
    return out


def _mean_exp(logs: FloatArray) -> FloatArray:
    """Return the log of the mean over members of what has these logs, infinite ones included."""
    return np.asarray(np.logaddexp.reduce(logs, axis=0) - np.log(len(logs)))
