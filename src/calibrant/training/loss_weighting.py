"""How much a part of a batch counts, so that parts and processes take the steps of the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.errors import InputError
from calibrant.losses.rows import IGNORE

__all__ = ["Weighing", "weighing_of"]


@dataclass(frozen=True)
class Weighing:
    r"""What a loss divides by where it is a mean over rows, or that it is a sum.

    A mean over the rows of a batch is

    $$ L = \frac{\sum_i w_i l_i}{\sum_i w_i} = \sum_p \frac{m_p}{m} L_p, \quad m_p = \sum_{i \in p}
    w_i $$

    with $l_i$ the loss of row $i$, $w_i$ the weight of its class (0 where it is ignored), $L_p$ the
    mean of a part of the batch, $m_p$ its mass and $m$ that of the batch. A sum needs no factor.

    A loss that looks at a batch as a whole (MMCE, soft F1) is none of this: parts count by their
    rows, and what it sees are the parts.

    Parameters
    ----------
    summed : whether it is a sum
    weight : (K,) weights of the classes, or None
    ignore_index : label of rows that do not count
    """

    summed: bool = False
    weight: Tensor | None = None
    ignore_index: int = IGNORE

    def mass(self, labels: Tensor) -> Tensor | float:
        """Return m_p of the rows with these labels; never waits for a GPU.

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
        kept = labels != self.ignore_index
        if self.weight is None:
            return kept.sum().double()
        weights = self.weight.to(labels.device)[labels.where(kept, 0)]
        return weights.where(kept, 0.0).double().sum()

    def whole(self, labels: Tensor, world: int) -> Tensor | float:
        """Return the mass of a batch over all processes, for each process as if it had its share.

        Gradients are averaged over processes, so that a factor of m_p over this is the right one.
        """
        own = self.mass(labels)
        if world == 1:
            return own
        found = torch.as_tensor(own, dtype=torch.float64, device=labels.device).clone()
        torch.distributed.all_reduce(found)
        return found / world

    def factor(self, labels: Tensor, whole: Tensor | float, world: int) -> Tensor | float:
        """Return what the loss of a part is multiplied by, m_p over the mass of the batch.

        Processes average their gradients; a sum over rows is to be the sum over all of them.
        """
        if self.summed:
            return float(world)
        if isinstance(whole, Tensor):
            return self.mass(labels) / whole.where(whole > 0, 1.0)
        return self.mass(labels) / whole


def weighing_of(loss: nn.Module, parts: int) -> Weighing:
    """Read what a loss divides by; refuse one whose terms disagree, where there are parts.

    Examples
    --------
    >>> from calibrant.losses import FocalLoss
    >>> weighing_of(FocalLoss(reduction="sum"), 2).summed
    True
    """
    terms = [found for part in loss.modules() if (found := _term(part)) is not None]
    if not terms or parts == 1:
        return terms[0] if terms else Weighing()
    first = terms[0]
    if any(term.summed != first.summed for term in terms):
        raise InputError(
            "the terms of a loss must be all means or all sums where a batch is cut into parts: "
            "give all of them the same reduction, or train with accumulate=1 and devices=1."
        )
    if not first.summed and any(not _alike(term, first) for term in terms):
        raise InputError(
            "the terms of a loss must weigh classes and ignore rows alike where a batch is cut "
            "into parts: give all of them the same weight, or train with accumulate=1 and "
            "devices=1."
        )
    return first


def _term(part: nn.Module) -> Weighing | None:
    """Read one term: a loss has its options as attributes, a function in a dict."""
    options: Any = getattr(part, "options", None)
    told = {"reduction": "mean", **options} if isinstance(options, dict) else vars(part)
    reduction = told.get("reduction")
    if reduction not in ("mean", "sum"):
        return None
    weight = told.get("weight", getattr(part, "weight", None))
    if _averages_over_rows(part):
        weight = None
    weight = None if weight is None else torch.as_tensor(weight, dtype=torch.float32)
    ignored = told.get("ignore_index", IGNORE)
    return Weighing(reduction == "sum", weight, ignored if isinstance(ignored, int) else IGNORE)


def _averages_over_rows(part: nn.Module) -> bool:
    """Whether torch divides this loss by the rows, whatever their classes weigh."""
    by_weights = isinstance(part, nn.CrossEntropyLoss | nn.NLLLoss)
    return type(part).__module__ == nn.CrossEntropyLoss.__module__ and not by_weights


def _alike(one: Weighing, other: Weighing) -> bool:
    if one.ignore_index != other.ignore_index or (one.weight is None) != (other.weight is None):
        return False
    return one.weight is None or other.weight is None or torch.equal(one.weight, other.weight)
