"""Logit adjustment: cross-entropy with the log prior added to the logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from calibrant.errors import InputError
from calibrant.fitting import class_weights
from calibrant.fitting.gammas import check_gamma
from calibrant.losses.base import RowLoss
from calibrant.losses.class_weights import as_counts, log_weight
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, Reduction, as_rows, reduce_values


def logit_adjustment_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    class_counts: Sequence[int] | Tensor,
    tau: float = 1.0,
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Logit-adjusted cross-entropy of a batch.

    $$ L = -\log \frac{e^{z_y + \tau \log \pi_y}}{\sum_k e^{z_k + \tau \log \pi_k}},
       \qquad \pi_k = \frac{n_k}{n} $$

    $z$ are the logits of a row, $y$ its class, $n_k$ the train rows of class $k$ and $\tau$ the
    strength: 0 is cross-entropy. The prior is added in the loss only. At prediction the logits are
    not adjusted, and at $\tau = 1$ their softmax estimates the posterior under equally frequent
    classes: rare classes are predicted more often.

    Its softmax is therefore not a probability for data with the train split's prior. Before
    measuring calibration or choosing thresholds on such data subtract `log_shift` from the logits.
    A class without rows counts as one row.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes, or class probabilities in the shape of `logits`
    class_counts : (K,) rows of each class in the train split
    tau : strength of the adjustment, at least 0
    weight : (K,) weight of each class
    ignore_index : label of ignored rows
    reduction : "mean" (divided by the sum of weights), "sum" or "none"

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import logit_adjustment_loss
    >>> row = torch.zeros(1, 2), torch.tensor([1])  # logits 0, so the prior answers: -log 0.1
    >>> round(float(logit_adjustment_loss(*row, class_counts=[90, 10])), 4)
    2.3026

    References
    ----------
    Menon et al. (2021), Long-tail learning via logit adjustment, section 4.
    """
    check_gamma(tau, low=0.0, name="tau")
    return adjusted_loss(
        logits,
        labels,
        added=tau * log_prior(class_counts),
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )


def adjusted_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    added: Tensor,
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    """Cross-entropy of the logits with a (K,) constant added to every row."""
    rows = as_rows(logits, labels, ignore_index=ignore_index)
    k = rows.logits.shape[1]
    if added.shape != (k,):
        raise InputError(
            f"class_counts must hold the rows of each class, ({k},) for these logits, "
            f"got {len(added)}."
        )
    moved = rows.logits + added.to(rows.logits)
    log_p = torch.log_softmax(moved, -1)
    if rows.labels is not None:
        log_p = log_p.gather(-1, rows.labels.unsqueeze(-1)).squeeze(-1)
    return reduce_values(-log_p, rows, weight=weight, reduction=reduction)


def log_prior(class_counts: Sequence[int] | Tensor) -> Tensor:
    """Logarithm of each class's share of the rows; a class without rows counts as one row."""
    return torch.from_numpy(class_weights.log_prior(as_counts(class_counts).numpy()))


@register("logit_adjustment")
class LogitAdjustmentLoss(RowLoss):
    """Logit-adjusted cross-entropy; see `logit_adjustment_loss`.

    Parameters
    ----------
    class_counts : (K,) rows of each class in the train split; by name, `as_loss` fills it in
    tau : strength of the adjustment, at least 0
    weight, ignore_index, reduction : see `logit_adjustment_loss`

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import LogitAdjustmentLoss
    >>> loss = LogitAdjustmentLoss([90, 10])
    >>> logits = torch.zeros(1, 2)  # a model that has learned nothing beyond the prior
    >>> (logits - loss.log_shift()).softmax(-1)
    tensor([[0.9000, 0.1000]])
    """

    log_prior: Tensor

    def __init__(
        self,
        class_counts: Sequence[int] | Tensor,
        *,
        tau: float = 1.0,
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_gamma(tau, low=0.0, name="tau")
        self.tau = tau
        self.register_buffer("log_prior", log_prior(class_counts).float())

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return adjusted_loss(logits, labels, added=self.tau * self.log_prior, **self.options)

    def log_shift(self) -> Tensor:
        """Return the constant to subtract from the logits for the posterior under the train prior.

        The result is the softmax that the loss trained, without its weights; a class without rows
        counts as one row, as in the loss.
        """
        shift = -self.tau * self.log_prior
        return shift if self.weight is None else shift + log_weight(self.weight)

    def extra_repr(self) -> str:
        """Show tau in the repr."""
        return f"tau={self.tau:g}"
