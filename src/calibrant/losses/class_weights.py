"""Class weights from class counts."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.errors import InputError
from calibrant.fitting import class_weights


def balanced_weights(class_counts: Sequence[int] | Tensor) -> Tensor:
    r"""Weights that give every class the same total weight in the loss.

    $$ w_k = \frac{n}{K n_k} $$

    $n_k$ is the number of rows of class $k$, $n$ of all, $K$ the number of classes that have rows;
    a class without rows gets 0. A model trained with them is not calibrated: undo the shift (see
    `CrossEntropyLoss.log_shift`) or correct the prior before probabilities are used.

    Parameters
    ----------
    class_counts : rows of each class in the train split

    Examples
    --------
    >>> from calibrant.losses import balanced_weights
    >>> balanced_weights([90, 10]).tolist()
    [0.5555555820465088, 5.0]
    """
    return torch.from_numpy(class_weights.balanced(as_counts(class_counts).numpy())).float()


def class_balanced_weights(class_counts: Sequence[int] | Tensor, *, beta: float = 0.999) -> Tensor:
    r"""Weights by the effective number of rows, milder than `balanced_weights`.

    $$ w_k \propto \frac{1 - \beta}{1 - \beta^{n_k}}, \qquad \sum_k w_k = K $$

    $n_k$ is the number of rows of class $k$ and $K$ the number of classes that have rows;
    $\beta = 0$ gives equal weights, $\beta \to 1$ balanced ones. A class without rows gets 0.

    Parameters
    ----------
    class_counts : rows of each class in the train split
    beta : how far each further row of a class counts, in [0, 1)

    Examples
    --------
    >>> from calibrant.losses import class_balanced_weights
    >>> [round(w, 3) for w in class_balanced_weights([900, 100], beta=0.99).tolist()]
    [0.776, 1.224]

    References
    ----------
    Cui et al. (2019), Class-balanced loss based on effective number of samples, section 4.
    """
    if not isinstance(beta, Real) or isinstance(beta, bool) or not 0 <= beta < 1:
        raise InputError(f"beta must lie in [0, 1), got {beta!r}.")
    counts = as_counts(class_counts).numpy()
    return torch.from_numpy(class_weights.class_balanced(counts, beta=beta)).float()


def log_weight(weight: Tensor) -> Tensor:
    """Return the logarithm of the class weights, by which they shift a perfect model.

    A class of weight 0 is shifted by the mean of the others: the model has learned nothing about
    it, and the logarithm of a tiny number would make that class win every row.
    """
    known = weight > 0
    logs = weight.where(known, 1.0).log()
    return logs.where(known, logs.sum() / known.sum().clamp_min(1))


def as_counts(class_counts: Sequence[int] | Tensor) -> Tensor:
    """Validate class counts."""
    try:
        counts = torch.as_tensor(class_counts, dtype=torch.float64, device="cpu")
    except (TypeError, ValueError, RuntimeError) as error:
        raise _counts_error(class_counts) from error
    if counts.ndim != 1 or len(counts) < 2:
        raise _counts_error(class_counts)
    if not bool((counts.isfinite() & (counts >= 0)).all()) or not bool(counts.any()):
        raise _counts_error(class_counts)
    return counts


def _counts_error(counts: Any) -> InputError:
    shown = counts.tolist() if isinstance(counts, Tensor) and counts.numel() < 20 else counts
    return InputError(
        f"class_counts must hold the rows of each of at least two classes, got {shown!r:.200}."
    )


def has_unknown_shift(loss: nn.Module) -> bool:
    """Return whether class weights shift a perfect model by an unknown amount."""
    log_shift = getattr(loss, "log_shift", None)
    if callable(log_shift) and log_shift() is not None:
        return False
    weights = [getattr(part, "weight", None) for part in loss.modules()]
    class_weights = [
        w for w in weights if isinstance(w, Tensor) and not isinstance(w, nn.Parameter)
    ]
    return any(bool((w != w.flatten()[0]).any()) for w in class_weights if w.numel())
