"""Gradients of the network for tables by hand: at this size autograd costs as much as the sums."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from calibrant.models.dropout import keep_mask, kept_scale
from calibrant.models.mlp import MLP

__all__ = ["MLPGradients"]


class _Hidden(NamedTuple):
    linear: nn.Linear
    norm: nn.BatchNorm1d | None
    share: float


class _Pass(NamedTuple):
    """What the way back needs of a hidden layer."""

    taken: Tensor  # what went in
    sums: Tensor  # after Linear
    mean: Tensor | None
    inverse_deviation: Tensor | None


class MLPGradients:
    r"""Forward and backward pass of an `MLP` in training, on a CPU, without autograd.

    The logits come as a leaf: call a loss on them and `backward` on the loss, then hand their
    gradient over. With $h = \max(a, 0) \cdot m$ after a hidden layer, $m$ the dropout mask, the way
    back through both is a product with $1 / (1 - p)$ where $h > 0$, else 0: the mask need not be
    kept. Gradients are written, not added: there is nothing to clear before.

    It is not for several processes, mixed precision or a GPU, nor for a network with hooks or
    frozen weights; `of` returns None for those that it can see.

    Parameters
    ----------
    model : whose weights get gradients

    Examples
    --------
    >>> import torch
    >>> from calibrant.models import MLP
    >>> from calibrant.models.mlp_gradients import MLPGradients
    >>> model = MLP(3, 2).train()
    >>> own = MLPGradients.of(model)
    >>> logits = own.forward(torch.randn(4, 3))
    >>> torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1, 1, 0])).backward()
    >>> own.backward(logits.grad)
    >>> model.layers[0].weight.grad.shape
    torch.Size([128, 3])
    """

    def __init__(self, model: MLP) -> None:
        self.model = model
        *hidden, last = model.layers
        self.hidden: list[_Hidden] = []
        norm: nn.BatchNorm1d | None = None
        for layer in hidden:
            if isinstance(layer, nn.Linear):
                linear, norm = layer, None
            elif isinstance(layer, nn.BatchNorm1d):
                norm = layer
            elif isinstance(layer, nn.Dropout):
                self.hidden.append(_Hidden(linear, norm, layer.p))
        assert isinstance(last, nn.Linear)
        self.last = last
        self._passes: list[_Pass] = []
        self._top = torch.empty(0)

    @classmethod
    def of(cls, model: nn.Module) -> MLPGradients | None:
        """Return the gradients of a model, or None where autograd has to find them."""
        if type(model) is not MLP:
            return None
        plain = all(w.requires_grad and w.device.type == "cpu" for w in model.parameters())
        hooked = any(
            part._forward_hooks or part._forward_pre_hooks or part._backward_hooks
            for part in model.modules()
        )
        return cls(model) if plain and not hooked else None

    @torch.no_grad()
    def forward(self, features: Tensor) -> Tensor:
        """Return the logits of (b, n_features) rows, as a leaf that takes a gradient."""
        self.model.check(features)
        self._passes = []
        values = features
        for linear, norm, share in self.hidden:
            taken, values = values, torch.addmm(linear.bias, values, linear.weight.t())
            sums, mean, inverse = values, None, None
            if norm is not None:
                values, mean, inverse = _normed(values, norm)
            values = torch.relu_(values)
            if share:
                values.mul_(keep_mask(values, share))
            self._passes.append(_Pass(taken, sums, mean, inverse))
        self._top = values
        return torch.addmm(self.last.bias, values, self.last.weight.t()).requires_grad_()

    @torch.no_grad()
    def backward(self, slope: Tensor) -> None:
        """Give every weight its gradient; `slope` is that of the logits."""
        linear, out = self.last, self._top
        for (below, norm, share), (taken, sums, mean, inverse) in zip(
            reversed(self.hidden), reversed(self._passes), strict=True
        ):
            linear.weight.grad, linear.bias.grad = torch.mm(slope.t(), out), slope.sum(0)
            slope = torch.mm(slope, linear.weight).mul_(out.sign())
            if share:
                slope.mul_(kept_scale(share))
            if norm is not None:
                slope, norm.weight.grad, norm.bias.grad = _unnormed(
                    slope, sums, norm, mean, inverse
                )
            linear, out = below, taken
        linear.weight.grad, linear.bias.grad = torch.mm(slope.t(), out), slope.sum(0)


def _normed(values: Tensor, norm: nn.BatchNorm1d) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise over the batch, and note it in the running figures; return 1 / deviation too."""
    assert norm.num_batches_tracked is not None
    assert norm.momentum is not None
    norm.num_batches_tracked.add_(1)
    return torch.native_batch_norm(
        values,
        norm.weight,
        norm.bias,
        norm.running_mean,
        norm.running_var,
        True,
        norm.momentum,
        norm.eps,
    )


def _unnormed(
    slope: Tensor, sums: Tensor, norm: nn.BatchNorm1d, mean: Tensor | None, inverse: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    found: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.native_batch_norm_backward(
        slope,
        sums,
        norm.weight,
        norm.running_mean,
        norm.running_var,
        mean,
        inverse,
        True,
        norm.eps,
        [True, True, True],
    )
    return found
