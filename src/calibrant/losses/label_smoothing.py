"""Label smoothing: cross-entropy against smoothed labels."""

from __future__ import annotations

from numbers import Real
from typing import Any

import torch
from torch import Tensor

from calibrant.errors import InputError
from calibrant.losses.base import RowLoss
from calibrant.losses.class_weights import log_weight
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, Reduction, as_rows, reduce_values


def label_smoothing_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    smoothing: float = 0.05,
    others_only: bool = False,
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Label smoothing of a batch.

    $$ L = -(1 - \alpha) \log p_y - \frac{\alpha}{K} \sum_k \log p_k $$

    $p$ is the softmax of a row's logits, $y$ its class, $K$ the number of classes and $\alpha$ the
    smoothing. The model it asks for on a row that is surely of class $y$ has
    $p_y = 1 - \alpha + \alpha / K$, so it is not a proper score: on data that allow sure
    predictions the model is left unsure, and its logits say less about what is unlike the train
    rows.

    There are two conventions. torch spreads $\alpha$ over all classes, as above. With
    `others_only=True` it goes to the others, $-(1 - \alpha) \log p_y - \frac{\alpha}{K - 1}
    \sum_{k \ne y} \log p_k$, as in the code of the calibration papers: the same loss with
    $\alpha K / (K - 1)$ in place of $\alpha$.

    A class weight counts the whole row, as if it occurred that many times. torch weights each
    $\log p_k$ by the weight of class $k$ instead.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes, or class probabilities in the shape of `logits`
    smoothing : share of each label that is spread over classes, from 0 to below 1
    others_only : spread it over the other classes only
    weight : (K,) weight of each class
    ignore_index : label of ignored rows
    reduction : "mean" (divided by the sum of weights), "sum" or "none"

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import label_smoothing_loss
    >>> logits = torch.tensor([[0.9, 0.1]]).log()  # -0.9 log 0.9 - 0.1 log 0.1
    >>> round(float(label_smoothing_loss(logits, torch.tensor([0]), smoothing=0.2)), 4)
    0.3251

    References
    ----------
    Szegedy et al. (2016), Rethinking the Inception architecture for computer vision, section 7;
    Mueller et al. (2019), When does label smoothing help?
    """
    _check_smoothing(smoothing)
    rows = as_rows(logits, labels, ignore_index=ignore_index)
    k = rows.logits.shape[1]
    spread_share = smoothing / (k - 1 if others_only else k)
    label_share = 1 - smoothing - (spread_share if others_only else 0.0)
    surprise = -torch.log_softmax(rows.logits, -1)
    spread = surprise.sum(-1, keepdim=True)
    if rows.labels is not None:
        surprise = surprise.gather(-1, rows.labels.unsqueeze(-1))
    values = label_share * surprise + spread_share * spread
    values = values.squeeze(-1) if rows.labels is not None else values
    return reduce_values(values, rows, weight=weight, reduction=reduction)


def _check_smoothing(smoothing: float) -> None:
    known = isinstance(smoothing, Real) and not isinstance(smoothing, bool)
    if not known or not 0 <= smoothing < 1:
        raise InputError(f"smoothing must be a number from 0 to below 1, got {smoothing!r}.")


@register("label_smoothing")
class LabelSmoothingLoss(RowLoss):
    """Label smoothing; see `label_smoothing_loss` for the formula and its two conventions.

    Parameters
    ----------
    smoothing : share of each label that is spread over classes, from 0 to below 1
    others_only : spread it over the other classes only, as the papers' code does
    weight, ignore_index, reduction : see `label_smoothing_loss`

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import LabelSmoothingLoss
    >>> loss = LabelSmoothingLoss(smoothing=0.1)
    >>> round(float(loss(torch.zeros(1, 4), torch.tensor([2]))), 4)  # log 4, however smoothed
    1.3863
    """

    def __init__(
        self,
        smoothing: float = 0.05,
        *,
        others_only: bool = False,
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        _check_smoothing(smoothing)
        self.smoothing = smoothing
        self.others_only = others_only

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return label_smoothing_loss(
            logits,
            labels,
            smoothing=self.smoothing,
            others_only=self.others_only,
            **self.options,
        )

    def log_shift(self) -> Tensor | None:
        """Return the shift of cross-entropy if smoothing is 0, else None."""
        return None if self.smoothing or self.weight is None else log_weight(self.weight)

    def extra_repr(self) -> str:
        """Show the smoothing in the repr."""
        return f"smoothing={self.smoothing:g}, others_only={self.others_only}"
