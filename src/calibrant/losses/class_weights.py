"""Weights of classes from their counts."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.errors import InputError

__all__ = ["as_counts", "balanced_weights", "class_balanced_weights", "log_weight", "moves_unknown"]


def balanced_weights(class_counts: Sequence[int] | Tensor) -> Tensor:
    r"""Weights that let every class count alike in the loss.

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
    counts = as_counts(class_counts)
    seen = counts > 0
    weights = counts.sum() / (seen.sum() * counts.clamp_min(1))
    return weights.where(seen, 0.0).float()


def class_balanced_weights(class_counts: Sequence[int] | Tensor, *, beta: float = 0.999) -> Tensor:
    r"""Weights by the effective number of rows: milder than balanced ones.

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
    counts = as_counts(class_counts)
    seen = counts > 0
    raw = ((1 - beta) / (1 - beta ** counts.clamp_min(1))).where(seen, 0.0)
    return (raw * seen.sum() / raw.sum()).float()


def log_weight(weight: Tensor) -> Tensor:
    """Logarithm of the class weights, by which they move a perfect model.

    A class of weight 0 has taught the model nothing, so there is nothing to undo: it is moved by as
    much as the others on average. The logarithm of a tiny number in its place would make that class
    win every row.

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses.class_weights import log_weight
    >>> log_weight(torch.tensor([1.0, 0.0, 4.0]))
    tensor([0.0000, 0.6931, 1.3863])
    """
    known = weight > 0
    logs = weight.where(known, 1.0).log()
    return logs.where(known, logs.sum() / known.sum().clamp_min(1))


def as_counts(class_counts: Sequence[int] | Tensor) -> Tensor:
    """Check the counts of classes."""
    try:
        counts = torch.as_tensor(class_counts, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise _no_counts(class_counts) from error
    if counts.ndim != 1 or len(counts) < 2:
        raise _no_counts(class_counts)
    if not bool((counts.isfinite() & (counts >= 0)).all()) or not bool(counts.any()):
        raise _no_counts(class_counts)
    return counts


def _no_counts(found: Any) -> InputError:
    shown = found.tolist() if isinstance(found, Tensor) and found.numel() < 20 else found
    return InputError(
        f"class_counts must hold the rows of each of at least two classes, got {shown!r:.200}."
    )


def moves_unknown(loss: nn.Module) -> bool:
    """Whether class weights move a perfect model, and by no constant that is known.

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import as_loss
    >>> from calibrant.losses.class_weights import moves_unknown
    >>> counts = torch.tensor([90, 10])
    >>> names = ("ce:weight=balanced", "focal:weight=balanced", "focal")
    >>> [moves_unknown(as_loss(name, class_counts=counts)) for name in names]
    [False, True, False]
    """
    told = getattr(loss, "log_shift", None)
    if callable(told) and told() is not None:
        return False
    found = [getattr(part, "weight", None) for part in loss.modules()]
    given = [w for w in found if isinstance(w, Tensor) and not isinstance(w, nn.Parameter)]
    return any(bool((w != w.flatten()[0]).any()) for w in given if w.numel())
