"""Scores of how little a row is like the train rows, from its logits: higher is less alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from calibrant.convert import log_probs_from_logits
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, as_logits

__all__ = ["SCORES", "energy", "entropy", "max_logit"]


def entropy(logits: Any) -> FloatArray:
    r"""Entropy of the softmax: how evenly a row's probability is spread over the classes.

    .. math:: H = -\sum_k p_k \log p_k, \qquad p = \mathrm{softmax}(z)

    z are the K logits of a row, log is the natural logarithm. H lies between 0 (all on one class)
    and log K (all alike). A constant added to all logits of a row does not change it.

    It is not blind to hard rows: a row of the train classes that lies between two of them has a
    high entropy too. And a strange row on which the model is sure has a low one.

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
    takes it to tell CIFAR-10 from SVHN.
    """
    log_probs = log_probs_from_logits(_matrix(logits))
    return np.asarray(0.0 - (np.exp(log_probs) * log_probs).sum(axis=1))


def energy(logits: Any, *, temperature: float = 1.0) -> FloatArray:
    r"""Free energy: minus the logarithm of the summed evidence for all classes.

    .. math:: E = -T \log \sum_k e^{z_k / T}

    z are the K logits of a row and T the temperature. Train rows have at least one large logit, so
    their energy is low. For T near 0 it becomes `max_logit`.

    It is not shift invariant: c added to all logits of a row takes c from E, though the
    probabilities stay. So it says nothing about log-probabilities, whose energy is 0 in every row,
    and a calibrator's output is no logit for it: take the logits of the network. Log-odds (n,) are
    read as -z/2 and z/2; then E only falls with |z|, and ranks rows as `entropy` does.

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
    r"""Minus the largest logit: how little evidence there is for any class.

    .. math:: M = -\max_k z_k

    z are the K logits of a row. It does not care how many classes come near the largest.

    It is not shift invariant: c added to all logits of a row takes c from M, though the
    probabilities stay. It is not the largest probability either, which looks at differences only.
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


SCORES: Mapping[str, Callable[[Any], FloatArray]] = {
    "energy": energy,
    "entropy": entropy,
    "max_logit": max_logit,
}
"""Every score by its name."""


def _matrix(logits: Any) -> FloatArray:
    """Return checked logits as (n, K) in float64, log-odds (n,) as two columns."""
    array = as_logits(logits).astype(np.float64, copy=False)
    return array if array.ndim == 2 else np.column_stack([-0.5 * array, 0.5 * array])
