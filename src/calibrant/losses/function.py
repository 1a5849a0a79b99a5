"""User-defined functions as losses, and the check of a loss's return value."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from calibrant.errors import InputError
from calibrant.losses.base import Loss


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
        _check_signature(function, options)
        self.function, self.options = function, options

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        if logits.dtype in (torch.float16, torch.bfloat16):
            logits = logits.float()
        value = self.function(logits, labels, **self.options)
        if self.options.get("reduction") != "none":
            _check_number(value, self.extra_repr())
        if logits.requires_grad:
            _check_connected(value, self.extra_repr())
        return value

    def extra_repr(self) -> str:
        """Show the function when the loss is printed."""
        return _name(self.function)


def check_value(value: object, name: str) -> None:
    """Refuse a loss value that is not a single number with a gradient."""
    _check_number(value, name)
    _check_connected(value, name)


def _check_number(value: object, name: str) -> None:
    if isinstance(value, Tensor) and not value.ndim:
        return
    if isinstance(value, Tensor):
        what = f"a tensor of shape {tuple(value.shape)}: use reduction='mean' or 'sum'"
    else:
        what = f"{value!r:.100}"
    raise InputError(
        f"a loss must return one number as a torch tensor, but {name} returned {what}."
    )


def _check_connected(value: object, name: str) -> None:
    if torch.is_grad_enabled() and isinstance(value, Tensor) and not value.requires_grad:
        raise InputError(
            f"the loss {name} returned a number without a gradient: nothing connects it to the "
            "model's weights, so compute it from the logits with torch alone."
        )


def _check_signature(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse a function whose signature does not accept `(logits, labels, **options)`."""
    try:
        takes = inspect.signature(function)
    except (TypeError, ValueError):  # C functions may have no signature
        return
    try:
        takes.bind(None, None, **options)
    except TypeError:
        name = _name(function)
        call = ", ".join(["logits", "labels", *(f"{key}={options[key]!r}" for key in options)])
        raise InputError(
            f"a loss is called as {name}({call:.200}), but {name} takes {takes}."
        ) from None


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", repr(function))
