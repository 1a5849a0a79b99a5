"""Dual focal loss: focal loss with a margin to the next class below the true one."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from torch import Tensor

from calibrant.fitting.gammas import check_gamma
from calibrant.losses.base import RowLoss
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, LossRows, Reduction, as_rows, reduce_values
from calibrant.losses.true_odds import odds_of


def dual_focal_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    gamma: float = 5.0,
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Dual focal loss of a batch.

    $$ L = -(1 - p_y + p_j)^\gamma \log p_y, \qquad p_j = \max \{p_k : p_k < p_y\} $$

    $p_y$ is the probability of the true class and $p_j$ the largest one strictly below it, 0 where
    there is none. The power decreases only as the margin to the next class grows, so a row
    with two likely classes keeps its weight; $\gamma = 0$ is cross-entropy. With shares $q_k$ the
    loss is $-\sum_k q_k (1 - p_k + p_{j(k)})^\gamma \log p_k$. The gradient flows through $p_j$
    too. Where another class overtakes $j$ the loss is continuous; where one overtakes $y$ it
    jumps.

    It is not a proper score: calibrate after it, and compare models by their log loss. The authors
    chose a different gamma for every network, from 2.3 to 6.1.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes, or class probabilities in the shape of `logits`
    gamma : focusing parameter, at least 0
    weight : (K,) weight of each class
    ignore_index : label of ignored rows
    reduction : "mean" (divided by the sum of weights), "sum" or "none"

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import dual_focal_loss
    >>> logits = torch.tensor([[0.6, 0.3, 0.1]]).log()  # -(1 - 0.6 + 0.3) ** 2 log 0.6
    >>> round(float(dual_focal_loss(logits, torch.tensor([0]), gamma=2)), 4)
    0.2503

    References
    ----------
    Tao et al. (2023), Dual focal loss for calibration, section 4.
    """
    check_gamma(gamma, low=0.0)
    rows = as_rows(logits, labels, ignore_index=ignore_index)
    odds = odds_of(rows)
    # log(1 - p_y + p_j) as a sum of two logarithms: neither term is formed by a subtraction.
    gap = torch.logaddexp(F.logsigmoid(-odds), _log_below(rows))
    values = -torch.exp(float(gamma) * gap) * F.logsigmoid(odds)
    return reduce_values(values, rows, weight=weight, reduction=reduction)


def _log_below(rows: LossRows) -> Tensor:
    """Logarithm of p_j for each row's class, (n,), or for every class, (n, K); -inf if none."""
    log_p = torch.log_softmax(rows.logits, -1)
    none = -torch.inf
    if rows.labels is not None:
        own = rows.logits.gather(-1, rows.labels.unsqueeze(-1))
        return log_p.masked_fill(rows.logits >= own, none).amax(-1)
    ranked, order = rows.logits.detach().sort(-1)
    place = torch.searchsorted(ranked, rows.logits.detach().contiguous()) - 1
    below = order.gather(-1, place.clamp_min(0))
    return log_p.gather(-1, below).masked_fill(place < 0, none)


@register("dual_focal")
class DualFocalLoss(RowLoss):
    """Dual focal loss; see `dual_focal_loss`.

    Parameters
    ----------
    gamma : focusing parameter, at least 0
    weight, ignore_index, reduction : see `dual_focal_loss`

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import DualFocalLoss
    >>> loss = DualFocalLoss(gamma=1)
    >>> round(float(loss(torch.zeros(1, 2), torch.tensor([0]))), 4)  # a tie: 0.5 log 2
    0.3466
    """

    def __init__(
        self,
        gamma: float = 5.0,
        *,
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_gamma(gamma, low=0.0)
        self.gamma = gamma

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return dual_focal_loss(logits, labels, gamma=self.gamma, **self.options)

    def extra_repr(self) -> str:
        """Show gamma in the repr."""
        return f"gamma={self.gamma:g}"
