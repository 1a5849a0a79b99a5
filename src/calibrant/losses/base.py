"""Base classes of losses: calls, updates from the steer split, sums and factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from calibrant.losses.rows import (
    IGNORE,
    Reduction,
    as_class_weight,
    check_ignore,
    check_reduction,
)

if TYPE_CHECKING:
    from calibrant.losses.sums import LossSum


class Loss(nn.Module):
    """A loss of `(logits, labels)`, with two hooks for the training loop.

    A training loop calls `set_epoch` before each epoch and `update` with the logits and labels of
    the steer split after each (or every `update_every` steps). Both do nothing by default. Losses
    can be added and scaled: `0.5 * CrossEntropyLoss() + 0.5 * SoftF1Loss()`.
    """

    name: ClassVar[str] = ""
    steered: ClassVar[bool] = False  # whether `update` learns anything from the steer split
    update_every: int | None = None  # optimiser steps between updates; None for once an epoch
    learned: ClassVar[tuple[str, ...]] = ()  # attributes that training changes: state, not options

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch that begins, counted from 0."""

    def update(self, logits: Any, labels: Any) -> None:
        """Update the state from the logits and labels of the steer split."""

    def log_shift(self) -> Tensor | None:
        """Return the (K,) constant by which this loss shifts the logits of a perfect model.

        Class weights and prior-adjusted losses train towards another posterior than that of the
        data. Subtract the shift from the logits to undo it. None if there is no shift, or no such
        constant.
        """
        return None

    def __add__(self, other: Any) -> LossSum:
        from calibrant.losses.sums import LossSum

        total: LossSum = LossSum.from_loss(self) + other
        return total

    def __radd__(self, other: Any) -> Loss:
        from calibrant.losses.sums import LossSum

        if isinstance(other, int) and other == 0:  # start value of the built-in `sum`
            return self
        total: LossSum = LossSum.from_loss(other) + self
        return total

    def __mul__(self, factor: float) -> LossSum:
        from calibrant.losses.sums import LossSum

        scaled: LossSum = LossSum.from_loss(self) * factor
        return scaled

    __rmul__ = __mul__


class RowLoss(Loss):
    """A loss that is a sum over rows, with torch's three options.

    Parameters
    ----------
    weight : (K,) weight of each class, multiplied with the loss of its rows; it does not
        change the focusing of a focal loss
    ignore_index : label of ignored rows
    reduction : "mean" (divided by the sum of weights), "sum" or "none"
    """

    weight: Tensor | None

    def __init__(
        self,
        *,
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        check_reduction(reduction)
        check_ignore(ignore_index)
        self.register_buffer("weight", None if weight is None else as_class_weight(weight))
        self.ignore_index = ignore_index
        self.reduction = reduction

    @property
    def options(self) -> dict[str, Any]:
        """The three options, as keyword arguments of the loss function."""
        return {
            "weight": self.weight,
            "ignore_index": self.ignore_index,
            "reduction": self.reduction,
        }
