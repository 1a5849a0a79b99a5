"""Class weights, log-weights and log-priors from class counts."""

from __future__ import annotations

import numpy as np

from calibrant.inputs import FloatArray


def balanced(counts: FloatArray) -> FloatArray:
    """Return weights (K,) that give every class the same total; 0 for a class without rows.

    Examples
    --------
    >>> balanced(np.array([90.0, 10.0, 0.0])).round(3).tolist()
    [0.556, 5.0, 0.0]
    """
    seen = counts > 0
    return np.where(seen, counts.sum() / (seen.sum() * np.maximum(counts, 1.0)), 0.0)


def class_balanced(counts: FloatArray, *, beta: float = 0.999) -> FloatArray:
    """Return weights (K,) by the effective number of rows; 0 for a class without rows.

    Examples
    --------
    >>> class_balanced(np.array([900.0, 100.0]), beta=0.99).round(3).tolist()
    [0.776, 1.224]
    """
    seen = counts > 0
    raw = np.where(seen, (1.0 - beta) / (1.0 - beta ** np.maximum(counts, 1.0)), 0.0)
    return np.asarray(raw * seen.sum() / raw.sum())


def log_weight(weight: FloatArray) -> FloatArray:
    """Return log-weights (K,); a class of weight 0 gets the mean of the others.

    Examples
    --------
    >>> log_weight(np.array([1.0, 0.0, 4.0])).round(4).tolist()
    [0.0, 0.6931, 1.3863]
    """
    known = weight > 0
    logs = np.log(np.where(known, weight, 1.0))
    return np.where(known, logs, logs.sum() / max(known.sum(), 1))


def log_prior(counts: FloatArray) -> FloatArray:
    """Return the log of each class's share of the rows; a class without rows counts as one row.

    Examples
    --------
    >>> np.exp(log_prior(np.array([98.0, 2.0, 0.0]))).round(4).tolist()
    [0.98, 0.02, 0.01]
    """
    least = min(float(counts[counts > 0].min()), 1.0)  # where shares of rows are passed: the least
    return np.asarray(np.log(np.where(counts > 0, counts, least) / counts.sum()))
