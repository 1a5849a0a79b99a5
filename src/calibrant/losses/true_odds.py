"""Log-odds of the true class, on which every focal loss is based."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from calibrant.losses.rows import LossRows


def true_odds(logits: Tensor, labels: Tensor) -> Tensor:
    r"""Log-odds of the true class against all others.

    $$ d_i = z_{iy} - \log \sum_{k \ne y} e^{z_{ik}}, \qquad p_i = \sigma(d_i), \qquad
       1 - p_i = \sigma(-d_i) $$

    $z$ are the logits of row $i$, $y$ its label and $p_i$ the probability of that label. A focal
    loss needs $\log(1 - p)$, and $1 - p$ rounds to 0 long before the loss does; `logsigmoid(-d)`
    is exact for every d. It is one pass over the logits and keeps one matrix for the gradient, as
    cross-entropy does. It cannot be differentiated twice.
    """
    odds: Tensor = _TrueOdds.apply(logits, labels.unsqueeze(-1))  # type: ignore[no-untyped-call]
    return odds


def class_odds(logits: Tensor) -> Tensor:
    """Log-odds of every class against all others, (n, K), for labels that are shares.

    Only the largest class of a row can have a probability that rounds to 1, so it alone is taken
    from the logits of the others; the rest come from their own probability.
    """
    top = logits.argmax(-1, keepdim=True)
    log_p = torch.log_softmax(logits, -1)
    small = log_p.scatter(-1, top, -1.0)  # any value that log1p takes: it is replaced below
    odds = log_p - torch.log1p(-small.exp())
    exact = true_odds(logits, top.squeeze(-1)).unsqueeze(-1)
    return odds.scatter(-1, top, exact)


def odds_of(rows: LossRows) -> Tensor:
    """Log-odds of each row's class, (n,), or of every class, (n, K), where labels are shares."""
    if rows.labels is None:
        return class_odds(rows.logits)
    return true_odds(rows.logits, rows.labels)


class _TrueOdds(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor) -> Tensor:
        others = logits.scatter(-1, labels, -torch.inf)
        shares = torch.softmax(others, -1)
        # The largest share is at least 1 / K, so its logarithm gives the sum without cancellation.
        total = others.amax(-1) - shares.amax(-1).log()
        ctx.save_for_backward(shares, labels)
        own = logits.gather(-1, labels).squeeze(-1)
        # Infinite odds would give a loss of 0 and hide a diverged model.
        return own - total + 0 * own

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        shares, labels = ctx.saved_tensors
        grad = grad.unsqueeze(-1)
        return (shares * -grad).scatter_(-1, labels, grad), None
