"""Sample-dependent focal loss: gamma depends on the probability of the true class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from calibrant.errors import InputError
from calibrant.fitting.gammas import check_steps
from calibrant.losses.base import RowLoss
from calibrant.losses.focal import focal_of_odds
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, Reduction, as_rows, reduce_values
from calibrant.losses.true_odds import odds_of

_FLAT = 0.4999


def flsd_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    gammas: Sequence[float] = (5.0, 3.0, 3.0),
    edges: Sequence[float] = (0.2, 0.5),
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Sample-dependent focal loss of a batch (FLSD).

    $$ L = -(1 - p_y)^{\gamma(p_y)} \log p_y, \qquad
       \gamma(p) = \gamma_j \text{ for } e_j \le p < e_{j+1} $$

    $p_y$ is the probability of the true class and $e_j$ the lower edge of the step $j$. The
    defaults are FLSD-53: 5 below 0.2, else 3. The published code lists three steps, 5 below 0.2, 3
    below 0.5 and its own argument above; "FLSD-52" there is `gammas=(5, 3, 2)`.

    Gamma is a constant of the row: no gradient flows through its choice, and the loss jumps where
    $p_y$ crosses an edge between unlike gammas. It is not a proper score, and as gamma depends on
    the label there is no map back to probabilities as for plain focal loss: calibrate with a
    temperature. With shares $q_k$ the loss is $-\sum_k q_k (1 - p_k)^{\gamma(p_k)} \log p_k$.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes, or class probabilities in the shape of `logits`
    gammas : gamma of each step, at least 0, one more than `edges`; `gamma_for` gives the least one
        that weakens the gradient of every row above a probability
    edges : rising probabilities inside (0, 1) between the steps
    weight : (K,) weight of each class
    ignore_index : label of ignored rows
    reduction : "mean" (divided by the sum of weights), "sum" or "none"

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import flsd_loss
    >>> logits = torch.tensor([[0.1, 0.9], [0.9, 0.1]]).log()  # 0.9 ** 5 log 10; 0.1 ** 3 log(1/.9)
    >>> loss = flsd_loss(logits, torch.tensor([0, 0]), reduction="none")
    >>> [round(value, 6) for value in loss.tolist()]
    [1.359654, 0.000105]

    References
    ----------
    Mukhoti et al. (2020), Calibrating deep neural networks using focal loss, section 5.
    """
    check_steps(gammas, edges)
    rows = as_rows(logits, labels, ignore_index=ignore_index)
    odds = odds_of(rows)
    values = focal_of_odds(odds, _look_up_gamma(odds.detach(), gammas, edges))
    return reduce_values(values, rows, weight=weight, reduction=reduction)


def gamma_for(p0: float) -> float:
    r"""Return the gamma at which focal loss and cross-entropy have equal gradients at p0.

    $$ g(p_0, \gamma) = (1 - p_0)^\gamma - \gamma p_0 (1 - p_0)^{\gamma - 1} \log p_0 = 1
       \quad\Rightarrow\quad
       \gamma = \frac{a}{b} + \frac{1}{\log a}
       W_{-1}\!\left(-\frac{a^{1 - a / b}}{b} \log a\right) $$

    $g$ is the gradient of focal loss over that of cross-entropy, $a = 1 - p_0$, $b = p_0 \log p_0$
    and $W_{-1}$ the lower branch of Lambert's function. With this gamma, the gradient of rows above
    $p_0$ is reduced and that of rows below it increased. From 0.5 on the only solution is 0, which
    is cross-entropy.

    Parameters
    ----------
    p0 : a probability inside (0, 1)

    Examples
    --------
    >>> from calibrant.losses import gamma_for
    >>> [round(gamma_for(p0), 2) for p0 in (0.1, 0.2, 0.25, 0.5)]
    [14.92, 4.85, 3.07, 0.0]

    References
    ----------
    Mukhoti et al. (2020), Calibrating deep neural networks using focal loss, proposition 1.
    """
    from scipy.special import lambertw

    if not 0 < p0 < 1:
        raise InputError(f"p0 must be a probability inside (0, 1), got {p0!r}.")
    if p0 > _FLAT:  # the branch begins at 0.5 and is too flat for float64 there: a straight line
        return gamma_for(_FLAT) * max(0.5 - p0, 0.0) / (0.5 - _FLAT)
    log_a, b = math.log1p(-p0), p0 * math.log(p0)
    ratio = (1 - p0) / b
    argument = -math.exp((1 - ratio) * log_a) / b * log_a
    return float(ratio + lambertw(argument, k=-1).real / log_a)


def _look_up_gamma(odds: Tensor, gammas: Sequence[float], edges: Sequence[float]) -> Tensor:
    """Look gamma up by the log-odds: a probability near an edge or near 1 would be rounded."""
    gamma = torch.full_like(odds, gammas[0])
    for edge, later in zip(edges, gammas[1:], strict=True):
        gamma = torch.where(odds >= math.log(edge / (1 - edge)), later, gamma)
    return gamma


@register("flsd")
class FLSDLoss(RowLoss):
    """Sample-dependent focal loss, FLSD-53 by default; see `flsd_loss`.

    Parameters
    ----------
    gammas : gamma of each step of the true class's probability, one more than `edges`
    edges : rising probabilities inside (0, 1) between the steps
    weight, ignore_index, reduction : see `flsd_loss`

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import FLSDLoss
    >>> loss = FLSDLoss()
    >>> round(float(loss(torch.zeros(1, 2), torch.tensor([0]))), 4)  # log 2 / 2 ** 3
    0.0866
    """

    def __init__(
        self,
        gammas: Sequence[float] = (5.0, 3.0, 3.0),
        edges: Sequence[float] = (0.2, 0.5),
        *,
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_steps(gammas, edges)
        self.gammas = tuple(gammas)
        self.edges = tuple(edges)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return flsd_loss(logits, labels, gammas=self.gammas, edges=self.edges, **self.options)

    def extra_repr(self) -> str:
        """Show the steps in the repr."""
        return f"gammas={self.gammas}, edges={self.edges}"
