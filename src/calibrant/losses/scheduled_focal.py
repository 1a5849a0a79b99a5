"""Scheduled focal loss: gamma changes with the epoch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar

import torch
from torch import Tensor

from calibrant.errors import InputError
from calibrant.fitting.gammas import check_gamma, check_numbers
from calibrant.losses.base import RowLoss
from calibrant.losses.focal import focal_of_odds
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, Reduction, as_rows, reduce_values
from calibrant.losses.true_odds import odds_of


def scheduled_focal_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    epoch: int | Tensor,
    gammas: Sequence[float] = (5.0, 3.0, 1.0),
    epochs: Sequence[int] = (100, 250),
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Focal loss of a batch, with the gamma of an epoch.

    $$ L = -(1 - p_y)^{\gamma(e)} \log p_y, \qquad
       \gamma(e) = \gamma_j \text{ for } e_j \le e < e_{j+1} $$

    $p_y$ is the probability of the true class, $e$ the epoch counted from 0 and $e_j$ the first
    epoch of the step $j$. The defaults are FLSc-531 of a run of 350 epochs: 5 before epoch 100, 3
    before epoch 250, then 1; scale `epochs` to the length of your own run. What `focal_loss` says
    about probabilities holds for the gamma of the last epochs.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes, or class probabilities in the shape of `logits`
    epoch : the epoch that runs, counted from 0; a tensor is not read back from its device
    gammas : gamma of each step, one more than `epochs`
    epochs : the epochs at which the next step begins, rising
    weight : (K,) weight of each class
    ignore_index : label of ignored rows
    reduction : "mean" (divided by the sum of weights), "sum" or "none"

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import scheduled_focal_loss
    >>> row = torch.zeros(1, 2), torch.tensor([0])  # p = 0.5: log 2 / 2 ** gamma
    >>> [round(float(scheduled_focal_loss(*row, epoch=e)), 4) for e in (0, 100, 250)]
    [0.0217, 0.0866, 0.3466]

    References
    ----------
    Mukhoti et al. (2020), Calibrating deep neural networks using focal loss, section 5.
    """
    _check_schedule(gammas, epochs)
    rows = as_rows(logits, labels, ignore_index=ignore_index)
    odds = odds_of(rows)
    values = focal_of_odds(odds, _look_up_gamma(epoch, gammas, epochs, odds.dtype))
    return reduce_values(values, rows, weight=weight, reduction=reduction)


def _look_up_gamma(
    epoch: int | Tensor, gammas: Sequence[float], epochs: Sequence[int], dtype: torch.dtype
) -> float | Tensor:
    if not isinstance(epoch, Tensor):
        _check_epoch(epoch)
        return gammas[bisect_right(epochs, epoch)]
    gamma = torch.full_like(epoch, gammas[0], dtype=dtype)
    for start, later in zip(epochs, gammas[1:], strict=True):
        gamma = torch.where(epoch >= start, later, gamma)  # on the device, without synchronisation
    return gamma


def _check_schedule(gammas: Sequence[float], epochs: Sequence[int]) -> None:
    check_numbers(gammas, "gammas")
    check_numbers(epochs, "epochs")
    for gamma in gammas:
        check_gamma(gamma, name="each of gammas")
    rising = all(early < late for early, late in pairwise(epochs)) and all(e >= 0 for e in epochs)
    if len(gammas) != len(epochs) + 1 or not rising:
        raise InputError(
            "a schedule needs rising epochs and one gamma more than it has epochs, "
            f"got gammas {list(gammas)} and epochs {list(epochs)}."
        )


def _check_epoch(epoch: int) -> None:
    if not isinstance(epoch, Integral) or isinstance(epoch, bool) or epoch < 0:
        raise InputError(f"epoch must be a whole number of at least 0, got {epoch!r}.")


@register("scheduled_focal")
class ScheduledFocalLoss(RowLoss):
    """Scheduled focal loss; see `scheduled_focal_loss`.

    The epoch is kept in the loss's `state_dict`, so a resumed run continues with the right gamma.

    Parameters
    ----------
    gammas : gamma of each step, one more than `epochs`
    epochs : the epochs, counted from 0, at which the next step begins
    weight, ignore_index, reduction : see `scheduled_focal_loss`

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import ScheduledFocalLoss
    >>> loss = ScheduledFocalLoss(gammas=[2, 0], epochs=[10])
    >>> loss.set_epoch(10)  # cross-entropy from here on
    >>> round(float(loss(torch.zeros(1, 2), torch.tensor([0]))), 4)
    0.6931
    """

    learned: ClassVar[tuple[str, ...]] = ("epoch",)
    epoch: Tensor

    def __init__(
        self,
        gammas: Sequence[float] = (5.0, 3.0, 1.0),
        epochs: Sequence[int] = (100, 250),
        *,
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        _check_schedule(gammas, epochs)
        self.gammas = tuple(gammas)
        self.epochs = tuple(epochs)
        self.register_buffer("epoch", torch.tensor(0))

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, counted from 0, which selects gamma."""
        _check_epoch(epoch)
        self.epoch.fill_(epoch)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return scheduled_focal_loss(
            logits,
            labels,
            epoch=self.epoch,
            gammas=self.gammas,
            epochs=self.epochs,
            **self.options,
        )

    def extra_repr(self) -> str:
        """Show the schedule in the repr."""
        return f"gammas={self.gammas}, epochs={self.epochs}"
