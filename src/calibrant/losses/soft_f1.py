"""Soft-F1 loss: one minus the F1 score of a batch, with probabilities instead of counts."""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from torch import Tensor

from calibrant.errors import InputError
from calibrant.losses.batch_loss import BatchLoss, as_batch, reduce_batch
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, LossRows, Reduction, check_finite
from calibrant.losses.true_odds import class_odds

Average = Literal["auto", "binary", "macro"]


def soft_f1_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    average: Average = "auto",
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Soft-F1 loss of a batch.

    $$ L_k = 1 - \frac{2 TP_k}{2 TP_k + FP_k + FN_k}, \qquad TP_k = \sum_i q_{ik} p_{ik}, \quad
       FP_k = \sum_i (1 - q_{ik}) p_{ik}, \quad FN_k = \sum_i q_{ik} (1 - p_{ik}) $$

    $p_{ik}$ is the probability of class $k$ in row $i$; $q_{ik}$ is 1 if that is the row's class
    and 0 if not, or the share of the class. "binary" is $L_1$, the loss of the second of two
    classes; "macro" is the mean of $L_k$ over the classes that occur in the batch.

    A batch without a positive row has an F1 of 0 whatever the model says, and so no gradient. The
    binary loss of such a batch is $FP_1 / (1 + FP_1)$ instead: 0 if no row is called positive.

    It is not a sum over rows: a mean over batches is not the F1 of all rows, and the value
    depends on the batch size. It is not a proper score either: it drives probabilities to 0 and 1
    and ruins calibration. Use it in a sum, `0.5*ce + 0.5*soft_f1`, and calibrate after it; often a
    threshold chosen after plain cross-entropy reaches the same F1.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes, or class probabilities in the shape of `logits`
    average : "binary", "macro", or "auto" for binary with two classes and macro with more
    weight : must be None
    ignore_index : label of ignored rows
    reduction : "mean", or "sum" for the mean times the number of rows that are not ignored

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import soft_f1_loss
    >>> logits = torch.tensor([[0.4, 0.6], [0.8, 0.2]]).log()  # TP 0.6, FP 0.2, FN 0.4
    >>> round(float(soft_f1_loss(logits, torch.tensor([1, 0]))), 4)  # 1 - 1.2 / 1.8
    0.3333
    """
    rows = as_batch(
        logits,
        labels,
        loss="soft_f1",
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    kind = _kind(average, rows.logits.shape[1])
    hits, alarms, misses = _counts(rows)
    loss = (alarms + misses) / _above_0(2 * hits + alarms + misses)
    occurs = hits.detach() + misses.detach() > 0
    if kind == "binary":
        value = torch.where(occurs, loss, alarms / (1 + alarms))[1]
    else:
        value = (loss * occurs).sum() / occurs.sum().clamp_min(1)
    return reduce_batch(value, rows, reduction)


def _counts(rows: LossRows) -> tuple[Tensor, Tensor, Tensor]:
    """Soft counts of each class: true positives, false positives, false negatives."""
    odds = class_odds(rows.logits)
    check_finite(odds.sum(-1), rows)
    p, others = torch.sigmoid(odds), torch.sigmoid(-odds)
    q = rows.one_hot()
    mask = 1.0 if rows.mask is None else rows.mask.unsqueeze(-1)
    return (
        (p * q * mask).sum(0),
        (p * (1 - q) * mask).sum(0),
        (others * q * mask).sum(0),
    )


def _above_0(total: Tensor) -> Tensor:
    return total.where(total > 0, 1.0)


def _kind(average: str, k: int) -> str:
    if average not in get_args(Average):
        raise InputError(f"average must be 'auto', 'binary' or 'macro', got {average!r}.")
    if average == "auto":
        return "binary" if k == 2 else "macro"
    if average == "binary" and k != 2:
        raise InputError(
            f"average 'binary' needs logits of two classes, got {k}: choose 'macro' or 'auto'."
        )
    return average


@register("soft_f1")
class SoftF1Loss(BatchLoss):
    """Soft-F1 loss; see `soft_f1_loss` for the formula and its effect on probabilities.

    Parameters
    ----------
    average : "binary", "macro", or "auto" for binary with two classes and macro with more
    weight : must be None
    ignore_index, reduction : see `soft_f1_loss`

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import SoftF1Loss
    >>> loss = SoftF1Loss()
    >>> float(loss(torch.zeros(2, 2), torch.tensor([1, 0])))  # TP 0.5, FP 0.5, FN 0.5
    0.5
    """

    def __init__(
        self,
        average: Average = "auto",
        *,
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        _kind(average, 2)
        self.average = average

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return soft_f1_loss(logits, labels, average=self.average, **self.options)

    def extra_repr(self) -> str:
        """Show the average in the repr."""
        return f"average={self.average!r}"
