"""Base class of losses of a whole batch, which are not sums over rows."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from calibrant.errors import InputError
from calibrant.losses.base import Loss
from calibrant.losses.rows import (
    IGNORE,
    LossRows,
    Reduction,
    as_rows,
    check_ignore,
    check_reduction,
)


class BatchLoss(Loss):
    """A loss of a batch as a whole: it has no value per row.

    It depends on which rows share a batch, so it changes with the batch size, and with several
    processes each uses its own rows only.

    Parameters
    ----------
    weight : must be None
    ignore_index : label of ignored rows
    reduction : "mean", or "sum" for the mean times the number of rows that are not ignored
    """

    def __init__(
        self,
        *,
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        check_batch_options(self.name or type(self).__name__, weight, reduction)
        check_ignore(ignore_index)
        self.ignore_index = ignore_index
        self.reduction = reduction

    @property
    def options(self) -> dict[str, Any]:
        """The options, as keyword arguments of the loss function."""
        return {"ignore_index": self.ignore_index, "reduction": self.reduction}


def check_batch_options(loss: str, weight: Any, reduction: str) -> None:
    """Refuse class weights and `reduction='none'`."""
    check_reduction(reduction)
    if reduction == "none":
        raise InputError(
            f"the loss {loss!r} is defined on a whole batch and has no value per row: "
            "choose reduction 'mean' or 'sum'."
        )
    if weight is not None:
        raise InputError(
            f"the loss {loss!r} is defined on a whole batch and does not support class weights: "
            "omit weight, or add it to a weighted loss, as in 'ce:weight=balanced + soft_f1'."
        )


def as_batch(
    logits: Tensor, labels: Tensor, *, loss: str, weight: Any, ignore_index: int, reduction: str
) -> LossRows:
    """Validate the options and rows of a batch."""
    check_batch_options(loss, weight, reduction)
    return as_rows(logits, labels, ignore_index=ignore_index)


def reduce_batch(value: Tensor, rows: LossRows, reduction: str) -> Tensor:
    """Return the value of a batch, times its number of rows if `reduction` is 'sum'."""
    if reduction == "mean":
        return value
    count = len(rows.logits) if rows.mask is None else rows.mask.sum()
    return value * count
