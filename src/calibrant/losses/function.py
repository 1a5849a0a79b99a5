"""A user's own function as a loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from calibrant.errors import InputError
from calibrant.losses.base import Loss

__all__ = ["FunctionLoss"]


class FunctionLoss(Loss):
    """Any function of `(logits, labels)` that returns one number, as a loss.

    Parameters
    ----------
    function : called with the logits and the labels of a batch
    **options : further keywords of the function

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import FunctionLoss
    >>> hinge = FunctionLoss(torch.nn.functional.multi_margin_loss, margin=2.0)
    >>> hinge(torch.zeros(1, 2), torch.tensor([0])).item()
    1.0
    """

    def __init__(self, function: Callable[..., Tensor], **options: Any) -> None:
        super().__init__()
        self.function, self.options = function, options

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        found = self.function(logits, labels, **self.options)
        if not isinstance(found, Tensor) or found.ndim:
            shape = (
                f"a tensor of shape {tuple(found.shape)}" if isinstance(found, Tensor) else found
            )
            raise InputError(
                f"a loss must return one number as a torch tensor, but "
                f"{getattr(self.function, '__name__', 'the function')} returned {shape!r}."
            )
        return found

    def extra_repr(self) -> str:
        """Show the function when the loss is printed."""
        return getattr(self.function, "__name__", repr(self.function))
