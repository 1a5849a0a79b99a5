"""Sums of losses: `0.5 * ce + 0.5 * soft_f1`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.errors import InputError
from calibrant.losses.base import Loss
from calibrant.losses.function import check_value


class LossSum(Loss):
    r"""A weighted sum of losses.

    $$ L = \sum_j c_j L_j $$

    $c_j$ is the factor of the loss $L_j$. Each term keeps its own reduction; add only terms on the
    same scale (all means, or all sums). `update` and `set_epoch` are forwarded to the terms.

    Parameters
    ----------
    terms : the losses
    factors : one finite number per loss; 1 by default

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import CrossEntropyLoss, FocalLoss
    >>> both = 0.5 * CrossEntropyLoss() + 0.5 * FocalLoss(gamma=0)
    >>> round(float(both(torch.zeros(1, 2), torch.tensor([0]))), 4)  # log 2 either way
    0.6931
    """

    def __init__(self, terms: Sequence[nn.Module], factors: Sequence[float] | None = None) -> None:
        super().__init__()
        factors = [1.0] * len(terms) if factors is None else list(factors)
        if not terms or len(factors) != len(terms) or not all(map(_is_finite, factors)):
            raise InputError(
                f"a sum of losses needs one finite factor per loss, got {len(terms)} losses and "
                f"factors {factors}."
            )
        self.terms = nn.ModuleList(terms)
        self.factors = tuple(float(factor) for factor in factors)

    @classmethod
    def from_loss(cls, loss: Any) -> LossSum:
        """Convert any loss to a sum of one term."""
        from calibrant.losses.names import as_loss

        return loss if isinstance(loss, LossSum) else cls([as_loss(loss)])

    @property
    def steered(self) -> bool:  # type: ignore[override]
        """Whether any term learns from the steer split."""
        return any(getattr(term, "steered", False) for term in self.terms)

    @property
    def update_every(self) -> int | None:  # type: ignore[override]
        """Steps between updates: the minimum over the terms."""
        intervals = [getattr(term, "update_every", None) for term in self.terms]
        return min((steps for steps in intervals if steps), default=None)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        values = [_require_tensor(term, term(logits, labels)) for term in self.terms]
        shapes = {tuple(value.shape) for value in values}
        if len(shapes) > 1:
            raise InputError(
                "the terms of a sum of losses must share one reduction, but gave shapes "
                f"{' and '.join(map(str, sorted(shapes)))}."
            )
        parts = [factor * value for factor, value in zip(self.factors, values, strict=True)]
        return torch.stack(parts).sum(0)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of every term."""
        for term in self.terms:
            if callable(set_epoch := getattr(term, "set_epoch", None)):
                set_epoch(epoch)

    def update(self, logits: Any, labels: Any) -> None:
        """Update every steered term from the steer split."""
        for term in self.terms:
            if getattr(term, "steered", False) and callable(learn := getattr(term, "update", None)):
                learn(logits, labels)

    def log_shift(self) -> Tensor | None:
        """Return the shift if all terms have the same one, else None."""
        methods = [getattr(term, "log_shift", None) for term in self.terms]
        shifts = [shift() if callable(shift) else None for shift in methods]
        first = shifts[0]
        agree = first is not None and all(s is not None and torch.equal(s, first) for s in shifts)
        return first if agree else None

    def __add__(self, other: Any) -> LossSum:
        others = LossSum.from_loss(other)
        return LossSum([*self.terms, *others.terms], self.factors + others.factors)

    def __mul__(self, factor: float) -> LossSum:
        if not _is_finite(factor):
            raise InputError(f"a loss can be scaled by a finite number, got {factor!r}.")
        return LossSum(list(self.terms), [factor * own for own in self.factors])

    __rmul__ = __mul__

    def extra_repr(self) -> str:
        """Show the factors when the sum is printed."""
        return f"factors={self.factors}"


def _require_tensor(term: nn.Module, value: Any) -> Tensor:
    """Refuse a value that is not a tensor: a user-defined term may return anything."""
    if not isinstance(value, Tensor):
        check_value(value, type(term).__name__)
    tensor: Tensor = value
    return tensor


def _is_finite(factor: Any) -> bool:
    return isinstance(factor, Real) and not isinstance(factor, bool) and math.isfinite(factor)
