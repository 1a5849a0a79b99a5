"""Focal loss: cross-entropy that down-weights easy rows."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from torch import Tensor

from calibrant.fitting.gammas import check_gamma
from calibrant.losses.base import RowLoss
from calibrant.losses.class_weights import log_weight
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, Reduction, as_rows, reduce_values
from calibrant.losses.true_odds import odds_of


def focal_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    gamma: float = 2.0,
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Focal loss of a batch.

    $$ L = -(1 - p_y)^\gamma \log p_y $$

    $p_y$ is the probability of the true class and $\gamma$ controls how fast the weight of a row
    falls as it becomes easy; 0 is cross-entropy. A negative gamma means inverse focal loss,
    $-(1 + p_y)^{|\gamma|} \log p_y$, as the AdaFocal paper writes it. With shares $q_k$ instead of
    a class the loss is $-\sum_k q_k (1 - p_k)^\gamma \log p_k$.

    It is not a proper score: its minimiser is less confident than the true posterior. Calibrate
    afterwards, and compare models by their log loss. Class weights stay outside the power, so they
    do not change which rows count as easy.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes, or class probabilities in the shape of `logits`
    gamma : focusing parameter
    weight : (K,) weight of each class
    ignore_index : label of ignored rows
    reduction : "mean" (divided by the sum of weights), "sum" or "none"

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import focal_loss
    >>> logits = torch.tensor([[0.0, 0.0]])  # p = 0.5: 0.5 ** 2 * log 2
    >>> round(float(focal_loss(logits, torch.tensor([1]), gamma=2)), 4)
    0.1733

    References
    ----------
    Lin et al. (2017), Focal loss for dense object detection, section 3; Mukhoti et al. (2020),
    Calibrating deep neural networks using focal loss.
    """
    check_gamma(gamma)
    rows = as_rows(logits, labels, ignore_index=ignore_index)
    values = focal_of_odds(odds_of(rows), gamma)
    return reduce_values(values, rows, weight=weight, reduction=reduction)


def focal_of_odds(odds: Tensor, gamma: Tensor | float) -> Tensor:
    """Focal loss as a function of the true class's log-odds; gamma may differ by row.

    A negative gamma means inverse focal loss. Gamma is a constant here: no gradient reaches it.
    """
    log_p = F.logsigmoid(odds)
    if not isinstance(gamma, Tensor):
        base = F.logsigmoid(-odds) if gamma >= 0 else torch.log1p(torch.sigmoid(odds))
        return -torch.exp(abs(float(gamma)) * base) * log_p
    easy = F.logsigmoid(-odds)
    base = torch.where(gamma >= 0, easy, torch.log1p(torch.sigmoid(odds)))
    return -torch.exp(gamma.detach().abs() * base) * log_p


@register("focal")
class FocalLoss(RowLoss):
    """Focal loss; see `focal_loss` for the formula and its effect on probabilities.

    Parameters
    ----------
    gamma : focusing parameter; 0 is cross-entropy, below 0 is inverse focal loss
    weight, ignore_index, reduction : see `focal_loss`

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import FocalLoss
    >>> loss = FocalLoss(gamma=3, reduction="none")
    >>> loss(torch.tensor([[60.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 0])).tolist()[1]
    0.0866...
    """

    def __init__(
        self,
        gamma: float = 2.0,
        *,
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_gamma(gamma)
        self.gamma = gamma

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return focal_loss(logits, labels, gamma=self.gamma, **self.options)

    def log_shift(self) -> Tensor | None:
        """Return the shift of cross-entropy if gamma is 0, else None."""
        return None if self.gamma or self.weight is None else log_weight(self.weight)

    def extra_repr(self) -> str:
        """Show gamma in the repr."""
        return f"gamma={self.gamma:g}"
