"""Inverse focal loss: cross-entropy that up-weights easy rows."""

from __future__ import annotations

import warnings
from typing import Any

from torch import Tensor

from calibrant.fitting.gammas import MAX_CALIBRATED_GAMMA, check_inverse_gamma
from calibrant.losses.base import RowLoss
from calibrant.losses.focal import focal_loss
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, Reduction


def inverse_focal_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    gamma: float = 1.0,
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Inverse focal loss of a batch.

    $$ L = -(1 + p_y)^\gamma \log p_y $$

    $p_y$ is the probability of the true class and $\gamma \ge 0$ says how much more an easy row
    counts; 0 is cross-entropy. The AdaFocal paper writes it with a negative gamma, and so does
    `focal_loss(gamma=-1)`, which is the same loss. With shares $q_k$ it is
    $-\sum_k q_k (1 + p_k)^\gamma \log p_k$.

    It is not a proper score: its minimiser is surer than the data are (0.698 for a true
    0.6 at gamma 1). It serves a model that is under-confident. Above 1.615 the best answer to a
    true 0.5 is no longer 0.5, which the class warns of; above 3.591 a row near 0.28 is pushed away
    from its own label; above 5 it is refused.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes, or class probabilities in the shape of `logits`
    gamma : from 0 to 5
    weight : (K,) weight of each class
    ignore_index : label of ignored rows
    reduction : "mean" (divided by the sum of weights), "sum" or "none"

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import inverse_focal_loss
    >>> logits = torch.tensor([[0.0, 0.0]])  # p = 0.5: 1.5 log 2
    >>> round(float(inverse_focal_loss(logits, torch.tensor([1]))), 4)
    1.0397

    References
    ----------
    Ghosh et al. (2022), AdaFocal: calibration-aware adaptive focal loss, section 4.
    """
    check_inverse_gamma(gamma)
    return focal_loss(
        logits,
        labels,
        gamma=-gamma,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )


@register("inverse_focal")
class InverseFocalLoss(RowLoss):
    """Inverse focal loss; see `inverse_focal_loss`.

    Parameters
    ----------
    gamma : from 0 to 5; above 1.615 a warning is given
    weight, ignore_index, reduction : see `inverse_focal_loss`

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import InverseFocalLoss
    >>> loss = InverseFocalLoss(gamma=1)
    >>> round(float(loss(torch.zeros(1, 2), torch.tensor([0]))), 4)  # 1.5 log 2
    1.0397
    """

    def __init__(
        self,
        gamma: float = 1.0,
        *,
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_inverse_gamma(gamma)
        if gamma > MAX_CALIBRATED_GAMMA:
            warnings.warn(
                f"inverse focal loss with gamma {gamma:g} pushes predictions away from a true "
                f"coin flip: use at most {MAX_CALIBRATED_GAMMA:g} unless you reproduce a paper.",
                stacklevel=2,
            )
        self.gamma = gamma

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return inverse_focal_loss(logits, labels, gamma=self.gamma, **self.options)

    def extra_repr(self) -> str:
        """Show gamma in the repr."""
        return f"gamma={self.gamma:g}"
