"""Out-of-scope scores of logits: higher means less like the train rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from calibrant.convert import log_probs_from_logits
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, as_logits


def entropy(logits: Any) -> FloatArray:
    r"""Entropy of the softmax of each row.

    .. math:: H = -\sum_k p_k \log p_k, \qquad p = \mathrm{softmax}(z)

    z are the K logits of a row, log is the natural logarithm. H lies between 0 (one certain class)
    and log K (uniform). A constant added to all logits of a row does not change it.

    It does not distinguish hard rows from rows out of scope: a row between two train classes has a
    high entropy too, and a row out of scope on which the model is confident has a low one.

    Parameters
    ----------
    logits : (n, K), or (n,) log-odds of the second of two classes

    Examples
    --------
    >>> entropy([[0.0, 0.0], [np.log(3), 0.0], [1e4, 0.0]]).round(4)
    array([0.6931, 0.5623, 0.    ])

    References
    ----------
    Mukhoti et al., Calibrating deep neural networks using focal loss, NeurIPS 2020, section 5,
    uses it to separate CIFAR-10 from SVHN.
    """
    log_probs = log_probs_from_logits(_matrix(logits))
    return np.asarray(0.0 - (np.exp(log_probs) * log_probs).sum(axis=1))


def energy(logits: Any, *, temperature: float = 1.0) -> FloatArray:
    r"""Free energy: the negative log-sum-exp of the logits.

    .. math:: E = -T \log \sum_k e^{z_k / T}

    z are the K logits of a row and T the temperature. Train rows have at least one large logit, so
    their energy is low. For T near 0 it becomes `max_logit`.

    It is not shift invariant: adding c to all logits of a row subtracts c from E, although the
    probabilities stay the same. The energy of log-probabilities is 0 in every row, so pass the
    logits of the network, not the output of a calibrator. Log-odds (n,) are read as -z/2 and z/2;
    then E decreases with |z| and ranks rows as `entropy` does.

    Parameters
    ----------
    logits : (n, K), or (n,) log-odds of the second of two classes
    temperature : T, greater than 0

    Examples
    --------
    >>> energy([[0.0, 0.0], [1.0, 1.0], [1e4, 0.0]]).round(4)
    array([-6.9310e-01, -1.6931e+00, -1.0000e+04])

    References
    ----------
    Liu et al., Energy-based out-of-distribution detection, NeurIPS 2020, equation 4.
    """
    if not (math.isfinite(temperature) and temperature > 0):
        raise InputError(f"temperature must be greater than 0, got {temperature}: 1 is usual.")
    matrix = _matrix(logits)
    top = matrix.max(axis=1)
    with np.errstate(over="ignore"):  # far below the top at a small T: e to minus infinity is 0
        rest = np.exp((matrix - top[:, None]) / temperature).sum(axis=1)
    return np.asarray(-(top + temperature * np.log(rest)))


def max_logit(logits: Any) -> FloatArray:
    r"""Negative largest logit of each row.

    .. math:: M = -\max_k z_k

    z are the K logits of a row. The other logits do not matter.

    It is not shift invariant: adding c to all logits of a row subtracts c from M, although the
    probabilities stay the same. It is not the largest probability, which depends on differences
    only.
    Log-odds (n,) are read as -z/2 and z/2.

    Parameters
    ----------
    logits : (n, K), or (n,) log-odds of the second of two classes

    Examples
    --------
    >>> max_logit([[0.5, 2.0], [-1.0, -3.0]])
    array([-2.,  1.])

    References
    ----------
    Hendrycks et al., Scaling out-of-distribution detection for real-world settings, ICML 2022.
    """
    return np.asarray(-_matrix(logits).max(axis=1))


def unreadable(logits: Any) -> FloatArray:
    """1 for a row whose logits are all equal, as of a row that the model cannot read; else 0.

    It is the score for boosted trees and n-grams, whose logits do not say how unusual a row is:
    with one log-odds, `energy` only finds rows near 0.5. Such a model itself knows a number far
    from its train rows, an unseen category, or a text without a known n-gram.

    Parameters
    ----------
    logits : (n, K), or (n,) log-odds of the second of two classes

    Examples
    --------
    >>> unreadable([[0.0, 0.0], [0.1, 0.0]])
    array([1., 0.])
    """
    return np.asarray(np.ptp(_matrix(logits), axis=1) == 0.0).astype(np.float64)


SCORES: Mapping[str, Callable[[Any], FloatArray]] = {
    "energy": energy,
    "entropy": entropy,
    "max_logit": max_logit,
    "unreadable": unreadable,
}
"""Scores by name."""


def _matrix(logits: Any) -> FloatArray:
    """Return checked logits as (n, K) in float64, log-odds (n,) as two columns."""
    array = as_logits(logits).astype(np.float64, copy=False)
    return array if array.ndim == 2 else np.column_stack([-0.5 * array, 0.5 * array])
