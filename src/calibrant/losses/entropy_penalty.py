"""Confidence penalty: cross-entropy minus a multiple of the entropy."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from calibrant.fitting.gammas import check_gamma
from calibrant.losses.base import RowLoss
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, Reduction, as_rows, reduce_values


def entropy_penalty_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    strength: float = 0.1,
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Cross-entropy minus a multiple of the prediction's entropy, of a batch.

    $$ L = -\log p_y - \beta H(p), \qquad H(p) = -\sum_k p_k \log p_k $$

    $p$ is the softmax of a row's logits, $y$ its class and $\beta$ the strength. The entropy is
    summed over classes, not averaged: code that divides it by $K$ needs $K$ times the strength.

    It is not a proper score: on a row of true shares $\eta$ the model it asks for solves
    $\eta_k = p_k (1 + \beta (\log p_k + H(p)))$, which is less sure than $\eta$. The value can be
    below 0; compare models by their log loss.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes, or class probabilities in the shape of `logits`
    strength : factor of the entropy, at least 0
    weight : (K,) weight of each class
    ignore_index : label of ignored rows
    reduction : "mean" (divided by the sum of weights), "sum" or "none"

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import entropy_penalty_loss
    >>> logits = torch.zeros(1, 4)  # both terms are log 4
    >>> round(float(entropy_penalty_loss(logits, torch.tensor([2]), strength=0.5)), 4)
    0.6931

    References
    ----------
    Pereyra et al. (2017), Regularizing neural networks by penalizing confident output
    distributions, section 3.
    """
    check_gamma(strength, low=0.0, name="strength")
    rows = as_rows(logits, labels, ignore_index=ignore_index)
    log_p = torch.log_softmax(rows.logits, -1)
    entropy = -(log_p.exp() * log_p).sum(-1)
    if rows.labels is None:
        values = -log_p - strength * entropy.unsqueeze(-1)
    else:
        values = -log_p.gather(-1, rows.labels.unsqueeze(-1)).squeeze(-1) - strength * entropy
    return reduce_values(values, rows, weight=weight, reduction=reduction)


@register("entropy_penalty")
class EntropyPenaltyLoss(RowLoss):
    """Cross-entropy with a confidence penalty; see `entropy_penalty_loss`.

    Parameters
    ----------
    strength : factor of the entropy, at least 0
    weight, ignore_index, reduction : see `entropy_penalty_loss`

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import EntropyPenaltyLoss
    >>> loss = EntropyPenaltyLoss(strength=0)  # cross-entropy
    >>> round(float(loss(torch.zeros(1, 2), torch.tensor([0]))), 4)
    0.6931
    """

    def __init__(
        self,
        strength: float = 0.1,
        *,
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_gamma(strength, low=0.0, name="strength")
        self.strength = strength

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return entropy_penalty_loss(logits, labels, strength=self.strength, **self.options)

    def extra_repr(self) -> str:
        """Show the strength in the repr."""
        return f"strength={self.strength:g}"
