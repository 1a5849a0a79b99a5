"""Batches that losses are tried on, and the few sentences in which their checks are written."""

from __future__ import annotations

import copy
import inspect
import io
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant.testing.expectations import expect

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = [
    "HUGE",
    "Case",
    "autocast",
    "copied",
    "drawn",
    "expect_alike",
    "expect_finite",
    "expect_near",
    "extremes",
    "gradient",
    "has_option",
    "one_hot",
    "resaved",
    "slopes",
    "with_options",
]

ROWS = 24
HUGE = 1e4
_STEP = 1e-5


@dataclass(frozen=True)
class Case:
    """A loss, a batch to try it on, and what it says of itself.

    Parameters
    ----------
    loss : the Module
    logits : (n, K) in float64; every class is the true one of some row
    labels : (n,)
    soft_labels, refuses, rowwise : see `check_loss`
    """

    loss: nn.Module
    logits: Tensor
    labels: Tensor
    soft_labels: bool
    refuses: bool
    rowwise: bool

    @property
    def k(self) -> int:
        """Number of classes."""
        return int(self.logits.shape[1])

    @property
    def plain(self) -> nn.Module:
        """The loss as a mean without class weights, as far as it lets us choose."""
        options = {"reduction": "mean", "weight": None}
        return with_options(
            self.loss, **{key: v for key, v in options.items() if has_option(self.loss, key)}
        )

    def few(self, n: int) -> tuple[Tensor, Tensor]:
        """Return the first n rows."""
        return self.logits[:n], self.labels[:n]


def drawn(k: int, seed: int, n: int = ROWS) -> tuple[Tensor, Tensor]:
    """Draw logits in float64 and labels, more often right than wrong, of which none is absent."""
    import torch

    noise = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % k
    logits = 2.0 * torch.randn(n, k, generator=noise, dtype=torch.float64)
    order = torch.randperm(n, generator=noise)
    return (logits + one_hot(labels, k))[order], labels[order]


def extremes(k: int) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield batches at the ends of what a precision holds, in float64."""
    logits, labels = drawn(k, 0, 2 * k)
    true = one_hot(labels, k)
    yield "logits of 60 for the true class", 60.0 * true, labels
    yield "logits of 1e4 for the true class", HUGE * true, labels
    yield "logits of 1e4 for the true class, -1e4 for others", HUGE * (2 * true - 1), labels
    yield "logits of -1e4 for the true class", HUGE * (1 - 2 * true), labels
    yield "equal logits of 1e4", HUGE + 0 * logits, labels
    yield "random logits up to 1e4", HUGE * logits / logits.abs().max(), labels
    logits = logits.clone()
    logits[::2] = HUGE * logits[::2].sign()
    yield "some logits of 1e4 in an ordinary batch", logits, labels


def gradient(loss: nn.Module, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss of a batch and its gradient."""
    leaf = logits.detach().clone().requires_grad_()
    value = loss(leaf, labels)
    expect(hasattr(value, "backward"), f"it returned {type(value).__name__} and not a tensor")
    expect(value.ndim == 0, f"it returned shape {tuple(value.shape)} and not one number")
    expect(value.requires_grad, "the value does not depend on the logits")
    value.backward()
    if leaf.grad is None:
        raise AssertionError("no gradient reached the logits")
    return value.detach(), leaf.grad


def slopes(loss: nn.Module, logits: Tensor, labels: Tensor) -> Tensor:
    """Return the gradient by central differences."""
    import torch

    found = torch.zeros_like(logits)
    with torch.no_grad():
        for place in range(logits.numel()):
            step = torch.zeros_like(logits).reshape(-1)
            step[place] = _STEP
            step = step.reshape(logits.shape)
            rise = loss(logits + step, labels) - loss(logits - step, labels)
            found.view(-1)[place] = rise / (2 * _STEP)
    return found


def one_hot(labels: Tensor, k: int) -> Tensor:
    """Write classes as shares in float64."""
    import torch

    return torch.nn.functional.one_hot(labels, k).double()


def autocast() -> AbstractContextManager[Any]:
    """Open mixed precision as a training loop on the CPU does."""
    import torch

    return torch.autocast("cpu", dtype=torch.bfloat16)


def copied(loss: nn.Module) -> nn.Module:
    """Copy a loss with its state."""
    return copy.deepcopy(loss)


def resaved(state: dict[str, Any]) -> dict[str, Any]:
    """Write a state to a file and read it, with no code in it."""
    import torch

    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    found: dict[str, Any] = torch.load(file, weights_only=True)
    return found


def has_option(loss: nn.Module, name: str) -> bool:
    """Whether a loss can be told something: an attribute, or a keyword of its function."""
    from calibrant.losses import FunctionLoss

    if isinstance(loss, FunctionLoss):
        try:
            return name in inspect.signature(loss.function).parameters
        except ValueError:  # written in C
            return False
    return hasattr(loss, name)


def with_options(loss: nn.Module, **options: Any) -> nn.Module:
    """Copy a loss and tell it something else than it was made with."""
    from calibrant.losses import FunctionLoss

    new = copied(loss)
    for name, value in options.items():
        expect(has_option(loss, name), f"it has no {name!r}")
        if isinstance(new, FunctionLoss):
            new.options[name] = value
        else:
            setattr(new, name, value)
    return new


def expect_alike(
    what: str, ours: tuple[Tensor, Tensor], theirs: tuple[Tensor, Tensor], tolerance: float = 1e-9
) -> None:
    """Expect the same value and the same gradient but for rounding."""
    for name, one, other in zip(("value", "gradient"), ours, theirs, strict=True):
        expect_near(f"{what}: {name}", one, other, tolerance)


def expect_near(what: str, ours: Tensor, theirs: Tensor, tolerance: float = 1e-9) -> None:
    """Expect the same numbers but for rounding, relative to the largest."""
    one, other = ours.detach().double(), theirs.detach().double()
    expect(one.shape == other.shape, f"{what} of {tuple(one.shape)} became {tuple(other.shape)}")
    gap = (one - other).abs()
    scale = max(float(one.abs().max()), float(other.abs().max()), 1e-3)
    if not bool((gap <= tolerance * scale).all()):
        worst = int(gap.nan_to_num(nan=float("inf")).argmax())
        pair = float(one.reshape(-1)[worst]), float(other.reshape(-1)[worst])
        raise AssertionError(f"{what} {pair[0]:.9g} became {pair[1]:.9g}")


def expect_finite(what: str, logits: Tensor, found: tuple[Tensor, Tensor]) -> None:
    """Expect a finite value, and a finite gradient of the shape and type of the logits."""
    value, grad = found
    expect(bool(value.isfinite()), f"{what}: the value is {float(value)}")
    expect(
        grad.shape == logits.shape and grad.dtype == logits.dtype,
        f"{what}: the gradient of {tuple(logits.shape)} {logits.dtype} logits is "
        f"{tuple(grad.shape)} {grad.dtype}",
    )
    if not bool(grad.isfinite().all()):
        bad = float(grad[~grad.isfinite()][0])
        raise AssertionError(f"{what}: the gradient holds {bad} in {grad.dtype}")
