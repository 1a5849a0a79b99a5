"""Cross-entropy with the options of all row losses."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from torch import Tensor

from calibrant.losses.base import RowLoss
from calibrant.losses.class_weights import log_weight
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, Reduction, as_rows, is_finite, reduce_values


def cross_entropy_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Cross-entropy (log loss) of a batch.

    $$ L = -\log p_y $$

    $p_y$ is the probability of the true class; with shares $q_k$ it is $-\sum_k q_k \log p_k$. It
    is a proper score: on enough data its minimiser is the true posterior. With class
    weights $w$ it is $w_k \eta_k / \sum_j w_j \eta_j$ instead; `log_shift` undoes that.

    It differs from torch's in two corners: a mean over shares divides by the sum of their weights,
    and a batch whose rows are all ignored gives 0 instead of NaN.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes, or class probabilities in the shape of `logits`
    weight : (K,) weight of each class
    ignore_index : label of ignored rows
    reduction : "mean" (divided by the sum of weights), "sum" or "none"

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import cross_entropy_loss
    >>> round(float(cross_entropy_loss(torch.zeros(1, 4), torch.tensor([2]))), 4)  # log 4
    1.3863
    """
    rows = as_rows(logits, labels, ignore_index=ignore_index)
    if weight is None and rows.is_unmasked and reduction != "none":  # the common case
        assert rows.labels is not None
        total = F.cross_entropy(rows.logits, rows.labels, reduction=reduction)
        if is_finite(total):
            return total
    if rows.labels is None:
        values = -torch.log_softmax(rows.logits, -1)
    else:
        values = F.cross_entropy(rows.logits, rows.labels, reduction="none")
    return reduce_values(values, rows, weight=weight, reduction=reduction)


@register("ce")
class CrossEntropyLoss(RowLoss):
    """Cross-entropy; see `cross_entropy_loss`.

    Parameters
    ----------
    weight, ignore_index, reduction : see `cross_entropy_loss`; by name, `ce:weight=balanced`
        takes the weights from the train split
    """

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return cross_entropy_loss(logits, labels, **self.options)

    def log_shift(self) -> Tensor | None:
        """Return the logarithm of the class weights, the shift of a perfect model."""
        return None if self.weight is None else log_weight(self.weight)
