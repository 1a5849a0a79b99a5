"""A user's own function as a loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from calibrant.errors import InputError
from calibrant.losses.base import Loss

__all__ = ["FunctionLoss"]


class FunctionLoss(Loss):
    """Any function of `(logits, labels)` that returns one number, as a loss.

    Logits in half precision reach the function in single precision, so that its sums do not
    overflow: torch's own cross-entropy of float16 logits does.

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
        if logits.dtype in (torch.float16, torch.bfloat16):
            logits = logits.float()
        found = self.function(logits, labels, **self.options)
        if not isinstance(found, Tensor) or (
            found.ndim and self.options.get("reduction") != "none"
        ):
            tensor = isinstance(found, Tensor)
            what = f"a tensor of shape {tuple(found.shape)}" if tensor else f"{found!r:.100}"
            raise InputError(
                f"a loss must return one number as a torch tensor, but {self.extra_repr()} "
                f"returned {what}."
            )
        return found

    def extra_repr(self) -> str:
        """Show the function when the loss is printed."""
        return getattr(self.function, "__name__", repr(self.function))
