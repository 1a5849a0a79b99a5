"""Test batches and assertions for the loss checks."""

from __future__ import annotations

import copy
import inspect
import io
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant.testing.calibrator_cases import expect

if TYPE_CHECKING:
    from torch import Tensor, nn

ROWS = 24
HUGE = 1e4
_STEP = 1e-5


@dataclass(frozen=True)
class LossCase:
    """A loss, a batch to test it on, and its declared properties."""

    loss: nn.Module
    logits: Tensor  # (n, K) in float64; every class is the label of some row
    labels: Tensor  # (n,)
    soft_labels: bool  # see `check_loss`
    refuses: bool
    rowwise: bool

    @property
    def k(self) -> int:
        """Number of classes."""
        return int(self.logits.shape[1])

    @property
    def unweighted(self) -> nn.Module:
        """The loss as a mean without class weights, if these can be set."""
        options = {"reduction": "mean", "weight": None}
        return with_options(
            self.loss, **{key: v for key, v in options.items() if has_option(self.loss, key)}
        )

    def first_rows(self, n: int) -> tuple[Tensor, Tensor]:
        """Return the first n rows."""
        return self.logits[:n], self.labels[:n]


def drawn(k: int, seed: int, n: int = ROWS) -> tuple[Tensor, Tensor]:
    """Draw float64 logits that favour the label, and labels that contain every class."""
    import torch

    noise = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % k
    logits = 2.0 * torch.randn(n, k, generator=noise, dtype=torch.float64)
    order = torch.randperm(n, generator=noise)
    return (logits + one_hot(labels, k))[order], labels[order]


def extremes(k: int) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield batches with extreme logits, in float64."""
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
    expect(hasattr(value, "backward"), f"it returned {type(value).__name__} instead of a tensor")
    expect(value.ndim == 0, f"it returned shape {tuple(value.shape)} instead of one number")
    expect(value.requires_grad, "the value does not depend on the logits")
    value.backward()
    if leaf.grad is None:
        raise AssertionError("no gradient reached the logits")
    return value.detach(), leaf.grad


def numeric_gradient(loss: nn.Module, logits: Tensor, labels: Tensor) -> Tensor:
    """Return the gradient from central differences."""
    import torch

    grad = torch.zeros_like(logits)
    with torch.no_grad():
        for i in range(logits.numel()):
            step = torch.zeros_like(logits).reshape(-1)
            step[i] = _STEP
            step = step.reshape(logits.shape)
            rise = loss(logits + step, labels) - loss(logits - step, labels)
            grad.view(-1)[i] = rise / (2 * _STEP)
    return grad


def one_hot(labels: Tensor, k: int) -> Tensor:
    """Return one-hot labels in float64."""
    import torch

    return torch.nn.functional.one_hot(labels, k).double()


def autocast() -> AbstractContextManager[Any]:
    """Return the autocast context of a CPU training loop."""
    import torch

    return torch.autocast("cpu", dtype=torch.bfloat16)


def copy_loss(loss: nn.Module) -> nn.Module:
    """Copy a loss with its state."""
    return copy.deepcopy(loss)


def save_and_load(state: dict[str, Any]) -> dict[str, Any]:
    """Save a state dict and load it with weights_only."""
    import torch

    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: dict[str, Any] = torch.load(file, weights_only=True)
    return loaded


def has_option(loss: nn.Module, name: str) -> bool:
    """Return whether a loss has an option: an attribute, or a keyword of its function."""
    from calibrant.losses import FunctionLoss

    if isinstance(loss, FunctionLoss):
        try:
            return name in inspect.signature(loss.function).parameters
        except ValueError:  # implemented in C
            return False
    return hasattr(loss, name)


def with_options(loss: nn.Module, **options: Any) -> nn.Module:
    """Copy a loss with other options."""
    from calibrant.losses import FunctionLoss

    new = copy_loss(loss)
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
    """Expect the same value and gradient up to rounding."""
    for name, expected, actual in zip(("value", "gradient"), ours, theirs, strict=True):
        expect_near(f"{what}: {name}", expected, actual, tolerance)


def expect_near(what: str, ours: Tensor, theirs: Tensor, tolerance: float = 1e-9) -> None:
    """Expect the same numbers up to rounding, relative to the largest."""
    expected, actual = ours.detach().double(), theirs.detach().double()
    expect(
        expected.shape == actual.shape,
        f"{what} of {tuple(expected.shape)} became {tuple(actual.shape)}",
    )
    gap = (expected - actual).abs()
    scale = max(float(expected.abs().max()), float(actual.abs().max()), 1e-3)
    if not bool((gap <= tolerance * scale).all()):
        worst = int(gap.nan_to_num(nan=float("inf")).argmax())
        pair = float(expected.reshape(-1)[worst]), float(actual.reshape(-1)[worst])
        raise AssertionError(f"{what} {pair[0]:.9g} became {pair[1]:.9g}")


def expect_finite(what: str, logits: Tensor, result: tuple[Tensor, Tensor]) -> None:
    """Expect a finite value and a finite gradient with the shape and dtype of the logits."""
    value, grad = result
    expect(bool(value.isfinite()), f"{what}: the value is {float(value)}")
    expect(
        grad.shape == logits.shape and grad.dtype == logits.dtype,
        f"{what}: the gradient of {tuple(logits.shape)} {logits.dtype} logits is "
        f"{tuple(grad.shape)} {grad.dtype}",
    )
    if not bool(grad.isfinite().all()):
        bad = float(grad[~grad.isfinite()][0])
        raise AssertionError(f"{what}: the gradient contains {bad} in {grad.dtype}")
