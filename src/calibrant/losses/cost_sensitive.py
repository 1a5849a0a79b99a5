"""Cost-sensitive loss: expected cost if classes were drawn from the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from calibrant.errors import InputError
from calibrant.losses.base import RowLoss
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, Reduction, as_rows, reduce_values

Costs = Sequence[Sequence[float]] | Tensor


def cost_sensitive_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    costs: Costs,
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Expected cost of a batch.

    $$ L = \sum_k C_{yk} p_k $$

    $p$ is the softmax of a row's logits, $y$ its class and $C_{yk}$ the cost of predicting $k$
    if $y$ is true; a correct prediction costs nothing. With shares $q$ the loss is
    $\sum_y q_y \sum_k C_{yk} p_k$.

    It is not a proper score: it is linear in $p$, so on enough data it puts all probability on the
    cheapest class, and its gradient vanishes on confidently wrong rows. Use it in a sum with
    cross-entropy, `ce + 0.1*cost_sensitive:costs=[[0,1],[5,0]]`. Where probabilities are needed,
    train with cross-entropy alone and put the costs into the threshold.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes, or class probabilities in the shape of `logits`
    costs : (K, K) finite numbers of at least 0, with the true class in rows, the prediction in
        columns and 0 on the diagonal
    weight : (K,) weight of each class
    ignore_index : label of ignored rows
    reduction : "mean" (divided by the sum of weights), "sum" or "none"

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import cost_sensitive_loss
    >>> logits = torch.tensor([[0.7, 0.3]]).log()  # a miss costs 5 and happens with 0.7
    >>> round(float(cost_sensitive_loss(logits, torch.tensor([1]), costs=[[0, 1], [5, 0]])), 4)
    3.5

    References
    ----------
    Elkan (2001), The foundations of cost-sensitive learning, section 1.
    """
    rows = as_rows(logits, labels, ignore_index=ignore_index)
    k = rows.logits.shape[1]
    table = _as_costs(costs, like=rows.logits)
    if table.shape[0] != k:
        raise InputError(
            f"costs must be a ({k}, {k}) table for logits of {k} classes, "
            f"got shape {tuple(table.shape)}."
        )
    p = torch.softmax(rows.logits, -1)
    # Products and sums, not a matrix product: autocast would lower its precision.
    if rows.labels is not None:
        values = (table[rows.labels] * p).sum(-1)
    else:
        values = (table * p.unsqueeze(-2)).sum(-1)
    return reduce_values(values, rows, weight=weight, reduction=reduction)


def _as_costs(costs: Costs, *, like: Tensor | None = None) -> Tensor:
    dtype, device = (torch.float32, None) if like is None else (like.dtype, like.device)
    try:
        table = torch.as_tensor(costs, dtype=dtype, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise _costs_error(costs) from error
    if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) < 2:
        raise _costs_error(costs)
    can_inspect = table.device.type == "cpu" and not torch.compiler.is_compiling()
    if can_inspect and not bool(
        (table.isfinite() & (table >= 0)).all() & (table.diagonal() == 0).all()
    ):
        raise _costs_error(costs)
    return table


def _costs_error(costs: Any) -> InputError:
    shown = costs.tolist() if isinstance(costs, Tensor) and costs.numel() < 20 else costs
    return InputError(
        "costs must be a square table of finite numbers of at least 0 with 0 on the diagonal, "
        f"like [[0,1],[5,0]], got {shown!r:.200}."
    )


@register("cost_sensitive")
class CostSensitiveLoss(RowLoss):
    """Expected cost of a batch; see `cost_sensitive_loss` for how to use it.

    Parameters
    ----------
    costs : (K, K) cost of each prediction (columns) for each true class (rows), 0 on the diagonal
    weight, ignore_index, reduction : see `cost_sensitive_loss`

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import CostSensitiveLoss, CrossEntropyLoss
    >>> loss = CrossEntropyLoss() + 0.1 * CostSensitiveLoss([[0, 1], [5, 0]])
    >>> round(float(loss(torch.zeros(1, 2), torch.tensor([1]))), 4)  # log 2 + 0.1 x 2.5
    0.9431
    """

    costs: Tensor

    def __init__(
        self,
        costs: Costs,
        *,
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        self.register_buffer("costs", _as_costs(costs))

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return cost_sensitive_loss(logits, labels, costs=self.costs, **self.options)

    def extra_repr(self) -> str:
        """Show the costs in the repr."""
        return f"costs={self.costs.tolist()}"
