"""Ensembles of networks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from calibrant.errors import InputError
from calibrant.inputs import FloatArray
from calibrant.models.options import plain
from calibrant.models.registry import build, register


@register("ensemble")
class Ensemble(nn.Module):
    r"""Average the probabilities of several networks with the same inputs.

    $$ z = \log \frac{1}{M} \sum_m \mathrm{softmax}(z_m - s_m)
        + \frac{1}{M} \sum_m \log \sum_k e^{z_{mk} - s_{mk}} $$

    with $z_m$ the logits of member $m$ and $s_m$ its shift. The first part is the log of the mean
    of the probabilities. The second is one number for all classes, so softmax(z) is that mean; and
    as the summed exponentials of the first part are 1, logsumexp(z) is the mean of the members',
    which keeps scores that are made of it, like the energy, meaningful.
    `calibrant.convert.ensemble_logits` is the same in NumPy.

    It is not the mean of the weights, nor of the logits, and nothing of it is trained together.

    Parameters
    ----------
    members : the networks, as configs, which are built with fresh weights, or as networks that have
        a config, which are taken as they are and not copied
    shifts : (M, K) what is taken off the logits of each member, or None

    Examples
    --------
    >>> import torch
    >>> from calibrant.models import MLP, Ensemble
    >>> members = [MLP(3, 2), MLP(3, 2, hidden=(8,), dropout=(0.1,))]
    >>> together, x = Ensemble(members).eval(), torch.ones(1, 3)
    >>> mean = sum(member(x).softmax(dim=1) for member in members) / 2
    >>> bool(torch.allclose(together(x).softmax(dim=1), mean))
    True

    References
    ----------
    Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation using deep
    ensembles.
    """

    shifts: Tensor | None

    def __init__(
        self, members: Sequence[Mapping[str, Any] | nn.Module], shifts: Any = None
    ) -> None:
        super().__init__()
        if isinstance(members, str | Mapping) or not isinstance(members, Sequence | nn.ModuleList):
            raise InputError(f"members must be a list of networks, got {type(members).__name__}.")
        if not members:
            raise InputError("members must hold at least one network, got none.")
        built = [as_network(member, f"members[{i}]") for i, member in enumerate(members)]
        self.members = nn.ModuleList(network for network, _ in built)
        self.config: dict[str, Any] = {
            "model": "ensemble",
            "members": [config for _, config in built],
        }
        self.register_buffer("shifts", None)
        if shifts is not None:
            self.shifts = as_shifts(shifts, "shifts", rows=len(self.members))
            self.config["shifts"] = self.shifts.tolist()

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return logits (b, K)."""
        logits = [member(*inputs) for member in self.members]
        odd = next((i for i, z in enumerate(logits) if z.shape != logits[0].shape), 0)
        if odd:
            raise InputError(
                f"members must agree in the number of classes, got {logits[0].shape[-1]} logits of "
                f"members[0] and {logits[odd].shape[-1]} of members[{odd}]."
            )
        shifts = None if self.shifts is None else self.shifts.unsqueeze(1)
        return mean_logits(subtract_shift(torch.stack(logits), shifts))


def mean_logits(logits: Tensor) -> Tensor:
    """Return the (b, K) logits whose softmax is the mean of those of (M, b, K); see `Ensemble`.

    It is computed in 64-bit floats and rounded once: the logits of a row then do not depend on the
    rows that it is averaged with.

    Examples
    --------
    >>> import torch
    >>> both = torch.tensor([[[0.9, 0.1]], [[0.5, 0.5]]]).log()
    >>> mean_logits(both).exp()
    tensor([[0.7000, 0.3000]])
    """
    exact = logits.double()
    log_probs = exact.log_softmax(dim=2).logsumexp(dim=0) - math.log(len(exact))
    mean = log_probs + exact.logsumexp(dim=2, keepdim=True).mean(dim=0)
    return mean.to(torch.promote_types(logits.dtype, torch.float32))


def average_logits(member_logits: Sequence[FloatArray], shifts: Sequence[Any]) -> FloatArray:
    """Return the logits of `Scorer.ensemble`, bit for bit, from the logits of its members.

    A threshold chosen on these logits is applied to those of the ensemble, and the row at the
    threshold must stay on its side.

    Examples
    --------
    >>> one, other = np.log([[0.75, 0.25]]), np.log([[0.25, 0.75]])
    >>> np.exp(average_logits([one, other], [None, None])).round(6)
    array([[0.5, 0.5]])
    """
    shifted = []
    for logits, shift in zip(member_logits, shifts, strict=True):
        off = np.zeros(logits.shape[-1]) if shift is None else np.asarray(shift)
        # Like the ensemble, subtract the shift in the 32-bit floats of the networks.
        shifted.append((logits + off).astype(np.float32) - off.astype(np.float32))
    return np.asarray(mean_logits(torch.from_numpy(np.stack(shifted))).numpy(), dtype=np.float64)


def subtract_shift(logits: Tensor, shift: Tensor | None) -> Tensor:
    """Subtract a shift from logits; another number of classes raises `InputError`."""
    if shift is None:
        return logits
    if shift.shape[-1] != logits.shape[-1]:
        raise InputError(
            f"the shift is for {shift.shape[-1]} classes, but there are {logits.shape[-1]} logits."
        )
    return logits - shift


def as_shifts(shifts: Any, name: str, *, rows: int | None = None) -> Tensor:
    """Return finite numbers (rows, K), or (K,) where `rows` is None, as a tensor."""
    try:
        values = np.asarray(shifts, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    wanted = "(classes,)" if rows is None else f"({rows}, classes)"
    fits = values.ndim == 1 if rows is None else values.ndim == 2 and len(values) == rows
    if not fits or not values.size or not np.isfinite(values).all():
        raise InputError(f"{name} must be finite numbers of shape {wanted}, got {shifts!r}.")
    return torch.tensor(values, dtype=torch.get_default_dtype())


def as_network(member: Any, name: str) -> tuple[nn.Module, dict[str, Any]]:
    """Return a network and its config: one that has a config as it is, or a config built.

    Examples
    --------
    >>> network, config = as_network({"model": "mlp", "n_features": 3, "n_classes": 2}, "member")
    >>> config["hidden"]
    [128, 64]
    """
    network = member
    if isinstance(member, Mapping):
        network = build(member, model=f"{name}['model']", options=name)
    config = getattr(network, "config", None)
    known = isinstance(config, Mapping) and "model" in config
    if not isinstance(network, nn.Module) or not known:
        raise InputError(
            f"{name} must be a network with a config, or a config, got {type(member).__name__}: "
            "list its class with calibrant.models.register and give it a config."
        )
    return network, dict(plain(config))
