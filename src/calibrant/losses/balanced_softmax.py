"""Balanced softmax: cross-entropy with class counts inside the softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from calibrant.losses.logit_adjustment import LogitAdjustmentLoss, logit_adjustment_loss
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, Reduction


def balanced_softmax_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    class_counts: Sequence[int] | Tensor,
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Balanced-softmax loss of a batch.

    $$ L = -\log \frac{n_y e^{z_y}}{\sum_k n_k e^{z_k}} $$

    $z$ are the logits of a row, $y$ its class and $n_k$ the train rows of class $k$. It is logit
    adjustment with $\tau = 1$: only ratios of counts matter. As with `logit_adjustment_loss`, the
    softmax of the model estimates the posterior under equally frequent classes, and `log_shift`
    converts it to that of the train split. A class
    without rows counts as one row.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes, or class probabilities in the shape of `logits`
    class_counts : (K,) rows of each class in the train split
    weight : (K,) weight of each class
    ignore_index : label of ignored rows
    reduction : "mean" (divided by the sum of weights), "sum" or "none"

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import balanced_softmax_loss
    >>> logits = torch.tensor([[1.0, 3.0]]).log()  # -log(30 / (90 x 1 + 10 x 3))
    >>> round(float(balanced_softmax_loss(logits, torch.tensor([1]), class_counts=[90, 10])), 4)
    1.3863

    References
    ----------
    Ren et al. (2020), Balanced meta-softmax for long-tailed visual recognition, section 3.1.
    """
    return logit_adjustment_loss(
        logits,
        labels,
        class_counts=class_counts,
        tau=1.0,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )


@register("balanced_softmax")
class BalancedSoftmaxLoss(LogitAdjustmentLoss):
    """Balanced-softmax loss; see `balanced_softmax_loss`.

    Parameters
    ----------
    class_counts : (K,) rows of each class in the train split; by name, `as_loss` fills it in
    weight, ignore_index, reduction : see `balanced_softmax_loss`

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import BalancedSoftmaxLoss
    >>> loss = BalancedSoftmaxLoss([90, 10])
    >>> round(float(loss(torch.zeros(1, 2), torch.tensor([1]))), 4)  # -log 0.1
    2.3026
    """

    def __init__(
        self,
        class_counts: Sequence[int] | Tensor,
        *,
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(
            class_counts, weight=weight, ignore_index=ignore_index, reduction=reduction
        )

    def extra_repr(self) -> str:
        """Return "": the loss has no options to show."""
        return ""
