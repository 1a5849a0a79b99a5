"""Brier loss: squared distance between probabilities and label."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from calibrant.losses.base import RowLoss
from calibrant.losses.class_weights import log_weight
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, Reduction, as_rows, reduce_values


def brier_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Brier loss of a batch: summed over classes, averaged over rows.

    $$ L = \sum_k (p_k - q_k)^2 $$

    $p$ is the softmax of a row's logits and $q_k$ is 1 for the true class and 0 for the others, or
    the share of class $k$. It lies in $[0, 2]$; for two classes it is twice the score that
    scikit-learn calls Brier.

    It is a proper score: on enough data its minimiser is the true posterior. Unlike
    cross-entropy it is bounded, so one mislabelled row cannot dominate a batch; but its gradient
    vanishes where the model is confidently wrong, and training needs more epochs.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes, or class probabilities in the shape of `logits`
    weight : (K,) weight of each class; a row of shares has the mean weight of its classes
    ignore_index : label of ignored rows
    reduction : "mean" (divided by the sum of weights), "sum" or "none"

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import brier_loss
    >>> logits = torch.tensor([[0.7, 0.2, 0.1]]).log()  # 0.3 ** 2 + 0.2 ** 2 + 0.1 ** 2
    >>> round(float(brier_loss(logits, torch.tensor([0]))), 6)
    0.14

    References
    ----------
    Brier (1950), Verification of forecasts expressed in terms of probability.
    """
    rows = as_rows(logits, labels, ignore_index=ignore_index)
    p = torch.softmax(rows.logits, -1)
    if rows.labels is None:
        values = (p - rows.one_hot()).square().sum(-1)
    else:  # 1 - p of the true class is the sum of the others, which does not round to 0
        others = p.scatter(-1, rows.labels.unsqueeze(-1), 0.0)
        values = others.square().sum(-1) + others.sum(-1).square()
    return reduce_values(values, rows, weight=weight, reduction=reduction)


@register("brier")
class BrierLoss(RowLoss):
    """Brier loss; see `brier_loss`.

    Parameters
    ----------
    weight, ignore_index, reduction : see `brier_loss`

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import BrierLoss
    >>> float(BrierLoss()(torch.zeros(1, 2), torch.tensor([0])))  # 0.5 ** 2 twice
    0.5
    """

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return brier_loss(logits, labels, **self.options)

    def log_shift(self) -> Tensor | None:
        """Return the logarithm of the class weights, the shift of a perfect model."""
        return None if self.weight is None else log_weight(self.weight)
