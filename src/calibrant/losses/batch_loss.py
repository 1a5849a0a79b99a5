"""Losses of a batch as a whole, which are no sum over rows: what they can and cannot take."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from calibrant.errors import InputError
from calibrant.losses.base import Loss
from calibrant.losses.rows import IGNORE, Reduction, Rows, as_rows, check_ignore, check_reduction

__all__ = ["BatchLoss", "as_batch", "check_batch_options", "of_batch"]


class BatchLoss(Loss):
    """A loss of a batch as a whole: it has no value per row.

    It depends on which rows share a batch, so it changes with the batch size, and over several
    processes each looks at its own rows only.

    Parameters
    ----------
    weight : must be None; it is named here so that the refusal can be clear
    ignore_index : label of rows that do not count
    reduction : "mean", or "sum" for that number times the rows that count
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
        """The options, to hand to the loss's function."""
        return {"ignore_index": self.ignore_index, "reduction": self.reduction}


def check_batch_options(loss: str, weight: Any, reduction: str) -> None:
    """Refuse what a loss of a whole batch cannot take."""
    check_reduction(reduction)
    if reduction == "none":
        raise InputError(
            f"the loss {loss!r} looks at a batch as a whole and has no value per row: "
            "choose reduction 'mean' or 'sum'."
        )
    if weight is not None:
        raise InputError(
            f"the loss {loss!r} looks at a batch as a whole and cannot take class weights: leave "
            "weight out, or add it to a weighted loss, as in 'ce:weight=balanced + soft_f1'."
        )


def as_batch(
    logits: Tensor, labels: Tensor, *, loss: str, weight: Any, ignore_index: int, reduction: str
) -> Rows:
    """Check the options and the rows of a batch."""
    check_batch_options(loss, weight, reduction)
    return as_rows(logits, labels, ignore_index=ignore_index)


def of_batch(value: Tensor, rows: Rows, reduction: str) -> Tensor:
    """Return the batch's value, times the rows that count where a sum is asked for."""
    if reduction == "mean":
        return value
    count = len(rows.logits) if rows.kept is None else rows.kept.sum()
    return value * count
