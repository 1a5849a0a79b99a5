"""Several networks that answer as one."""

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

__all__ = [
    "Ensemble",
    "as_network",
    "as_shifts",
    "logits_together",
    "mean_logits",
    "without_shift",
]


@register("ensemble")
class Ensemble(nn.Module):
    r"""Networks that read the same, and answer with the mean of their probabilities.

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
        made = [as_network(member, f"members[{place}]") for place, member in enumerate(members)]
        self.members = nn.ModuleList(network for network, _ in made)
        self.config: dict[str, Any] = {
            "model": "ensemble",
            "members": [config for _, config in made],
        }
        self.register_buffer("shifts", None)
        if shifts is not None:
            self.shifts = as_shifts(shifts, "shifts", rows=len(self.members))
            self.config["shifts"] = self.shifts.tolist()

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the logits (b, K) of what each member reads."""
        found = [member(*inputs) for member in self.members]
        odd = next((place for place, z in enumerate(found) if z.shape != found[0].shape), 0)
        if odd:
            raise InputError(
                f"members must agree in the number of classes, got {found[0].shape[-1]} logits of "
                f"members[0] and {found[odd].shape[-1]} of members[{odd}]."
            )
        shifts = None if self.shifts is None else self.shifts.unsqueeze(1)
        return mean_logits(without_shift(torch.stack(found), shifts))


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


def logits_together(member_logits: Sequence[FloatArray], shifts: Sequence[Any]) -> FloatArray:
    """Return what `Scorer.together` gives, from what its members gave alone, to the last bit.

    A threshold that is chosen on these logits is compared with those of the ensemble, and the row
    that it was chosen at must not fall to its other side.

    Examples
    --------
    >>> one, other = np.log([[0.75, 0.25]]), np.log([[0.25, 0.75]])
    >>> np.exp(logits_together([one, other], [None, None])).round(6)
    array([[0.5, 0.5]])
    """
    found = []
    for logits, shift in zip(member_logits, shifts, strict=True):
        off = np.zeros(logits.shape[-1]) if shift is None else np.asarray(shift)
        # Networks answer in 32-bit floats, and so does the ensemble take the shift off.
        found.append((logits + off).astype(np.float32) - off.astype(np.float32))
    return np.asarray(mean_logits(torch.from_numpy(np.stack(found))).numpy(), dtype=np.float64)


def without_shift(logits: Tensor, shift: Tensor | None) -> Tensor:
    """Take a shift off logits, or say that it is for another number of classes."""
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
        found = np.asarray(shifts, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    wanted = "(classes,)" if rows is None else f"({rows}, classes)"
    fits = found.ndim == 1 if rows is None else found.ndim == 2 and len(found) == rows
    if not fits or not found.size or not np.isfinite(found).all():
        raise InputError(f"{name} must be finite numbers of shape {wanted}, got {shifts!r}.")
    return torch.tensor(found, dtype=torch.get_default_dtype())


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
