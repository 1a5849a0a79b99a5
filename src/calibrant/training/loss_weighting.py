"""Weights of the parts of a batch, so that parts and processes take the step of the whole batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.errors import InputError
from calibrant.losses.rows import IGNORE

__all__ = ["Weighing", "read_weighing"]


@dataclass(frozen=True)
class Weighing:
    r"""The normalisation of a loss: a weighted mean over rows, or a sum.

    A mean over the rows of a batch is

    $$ L = \frac{\sum_i w_i l_i}{\sum_i w_i} = \sum_p \frac{m_p}{m} L_p, \quad m_p = \sum_{i \in p}
    w_i $$

    with $l_i$ the loss of row $i$, $w_i$ the weight of its class (0 where it is ignored), $L_p$ the
    mean of a part of the batch, $m_p$ its mass and $m$ that of the batch. A sum needs no factor.

    A loss of a whole batch (MMCE, soft F1) does not decompose like this: its parts are weighted by
    their number of rows, and it is computed on the parts.

    Parameters
    ----------
    summed : whether the loss is a sum
    weight : (K,) class weights, or None
    ignore_index : label of ignored rows
    """

    summed: bool = False
    weight: Tensor | None = None
    ignore_index: int = IGNORE

    def mass(self, labels: Tensor) -> Tensor | float:
        """Return m_p of the rows with these labels, without synchronising with a GPU.

        Examples
        --------
        >>> Weighing(weight=torch.tensor([1.0, 3.0])).mass(torch.tensor([0, 1, 1]))
        tensor(7., dtype=torch.float64)
        """
        hard = not labels.is_floating_point()
        if self.weight is None and (not hard or self.ignore_index < 0):
            return float(len(labels) if not hard else labels.numel())  # labels are all classes
        if not hard:
            assert self.weight is not None
            return (labels.movedim(1, -1) * self.weight.to(labels.device)).sum().double()
        counted = labels != self.ignore_index
        if self.weight is None:
            return counted.sum().double()
        weights = self.weight.to(labels.device)[labels.where(counted, 0)]
        return weights.where(counted, 0.0).double().sum()

    def whole(self, labels: Tensor, world: int) -> Tensor | float:
        """Return the mass of a batch over all processes, divided by their number.

        Gradients are averaged over processes, so the factor of a part is m_p over this.
        """
        local = self.mass(labels)
        if world == 1:
            return local
        total = torch.as_tensor(local, dtype=torch.float64, device=labels.device).clone()
        torch.distributed.all_reduce(total)
        return total / world

    def factor(self, labels: Tensor, whole: Tensor | float, world: int) -> Tensor | float:
        """Return the factor of a part's loss: m_p over the mass of the batch.

        For a sum it is the number of processes, since they average their gradients.
        """
        if self.summed:
            return float(world)
        if isinstance(whole, Tensor):
            return self.mass(labels) / whole.where(whole > 0, 1.0)
        return self.mass(labels) / whole


def read_weighing(loss: nn.Module, parts: int) -> Weighing:
    """Return the normalisation of a loss; with several parts its terms must agree.

    Examples
    --------
    >>> from calibrant.losses import FocalLoss
    >>> read_weighing(FocalLoss(reduction="sum"), 2).summed
    True
    """
    terms = [term for part in loss.modules() if (term := _read_term(part)) is not None]
    if not terms or parts == 1:
        return terms[0] if terms else Weighing()
    first = terms[0]
    if any(term.summed != first.summed for term in terms):
        raise InputError(
            "the terms of a loss must be all means or all sums if a batch is split into parts: "
            "give all of them the same reduction, or train with accumulate=1 and devices=1."
        )
    if not first.summed and any(not _alike(term, first) for term in terms):
        raise InputError(
            "the terms of a loss must weight classes and ignore rows alike if a batch is split "
            "into parts: give all of them the same weight, or train with accumulate=1 and "
            "devices=1."
        )
    return first


def _read_term(part: nn.Module) -> Weighing | None:
    """Return the normalisation of one term, from the options of a function or from attributes."""
    options: Any = getattr(part, "options", None)
    settings = {"reduction": "mean", **options} if isinstance(options, dict) else vars(part)
    reduction = settings.get("reduction")
    if reduction not in ("mean", "sum"):
        return None
    weight = settings.get("weight", getattr(part, "weight", None))
    if _averages_over_rows(part):
        weight = None
    weight = None if weight is None else torch.as_tensor(weight, dtype=torch.float32)
    ignored = settings.get("ignore_index", IGNORE)
    return Weighing(reduction == "sum", weight, ignored if isinstance(ignored, int) else IGNORE)


def _averages_over_rows(part: nn.Module) -> bool:
    """Whether torch averages this loss over rows, regardless of class weights."""
    by_weights = isinstance(part, nn.CrossEntropyLoss | nn.NLLLoss)
    return type(part).__module__ == nn.CrossEntropyLoss.__module__ and not by_weights


def _alike(one: Weighing, other: Weighing) -> bool:
    if one.ignore_index != other.ignore_index or (one.weight is None) != (other.weight is None):
        return False
    return one.weight is None or other.weight is None or torch.equal(one.weight, other.weight)
