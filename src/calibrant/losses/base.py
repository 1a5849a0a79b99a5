"""What all losses share: how they are called, steered, added and scaled."""

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

__all__ = ["Loss", "RowLoss"]


class Loss(nn.Module):
    """A loss of `(logits, labels)`, with the two moments at which it may learn.

    A training loop calls `set_epoch` before each epoch and `update` with the logits and labels of
    the steer split after each (or every `update_every` steps). Both do nothing here. Losses can be
    added and scaled: `0.5 * CrossEntropyLoss() + 0.5 * SoftF1Loss()`.
    """

    name: ClassVar[str] = ""
    steered: ClassVar[bool] = False  # whether `update` learns anything from the steer split
    update_every: int | None = None  # optimiser steps between updates; None for once an epoch
    learned: ClassVar[tuple[str, ...]] = ()  # attributes that training changes: state, not options

    def set_epoch(self, epoch: int) -> None:
        """Be told which epoch begins, counted from 0."""

    def update(self, logits: Any, labels: Any) -> None:
        """Learn from the logits and labels of the steer split."""

    def log_shift(self) -> Tensor | None:
        """Return the (K,) constant by which this loss moves the logits of a perfect model.

        Class weights and prior-adjusted losses train towards another posterior than the one in the
        data. Subtracting this from the logits undoes it. None where nothing is moved, or where no
        such constant exists.
        """
        return None

    def __add__(self, other: Any) -> LossSum:
        from calibrant.losses.sums import LossSum

        total: LossSum = LossSum.of(self) + other
        return total

    def __radd__(self, other: Any) -> Loss:
        from calibrant.losses.sums import LossSum

        if isinstance(other, int) and other == 0:  # where the built-in `sum` begins
            return self
        total: LossSum = LossSum.of(other) + self
        return total

    def __mul__(self, factor: float) -> LossSum:
        from calibrant.losses.sums import LossSum

        scaled: LossSum = LossSum.of(self) * factor
        return scaled

    __rmul__ = __mul__


class RowLoss(Loss):
    """A loss that is a sum over rows, with torch's three options.

    Parameters
    ----------
    weight : (K,) weight of each class, multiplied onto the loss of its rows from outside: it
        does not change how hard a row is held to be
    ignore_index : label of rows that do not count
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
        """The three options, to hand to the loss's function."""
        return {
            "weight": self.weight,
            "ignore_index": self.ignore_index,
            "reduction": self.reduction,
        }
