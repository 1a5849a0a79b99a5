"""One network that answers as many, by keeping its dropout on."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from calibrant.errors import InputError
from calibrant.models.dropout import Dropout
from calibrant.models.ensemble import as_network, as_shifts, mean_logits, subtract_shift
from calibrant.models.options import check_counts
from calibrant.models.registry import register

# Which pass is under way: (seed, number). It belongs to the caller's thread, not to the network,
# so that threads may share a network.
_PASS: ContextVar[tuple[int, int] | None] = ContextVar("_PASS", default=None)


@register("mc_dropout")
class MCDropout(nn.Module):
    r"""A network whose dropout stays on: the mean over several thinned copies of it.

    $$ z = \log \frac{1}{T} \sum_t \mathrm{softmax}(z_t - s)
        + \frac{1}{T} \sum_t \log \sum_k e^{z_{tk} - s_k} $$

    with $z_t$ the logits of pass $t$ and $s$ the shift: the mean of the probabilities, as for
    `Ensemble`. Pass $t$ drops each feature before which a dropout layer stands with that layer's
    $p$, and scales the others by $1 / (1 - p)$.

    Which features a pass drops is drawn once, from the seed, the pass and the layer, and is the
    same for all rows, all tokens and all pixels: of a 4-D value channels are dropped, of any other
    the last dimension. So the logits of a row depend neither on its batch nor on the day, and the
    T thinned networks are an ensemble that shares its weights.

    It is not the textbook's fresh draw for each row, which answers differently each time. Layers
    are torch's `nn.Dropout` and this package's; dropout within `nn.LSTM`, or by a function, stays
    off. In training mode it is the network itself, with its usual dropout.

    Parameters
    ----------
    member : the network, as a config, which is built with fresh weights, or as a network that has a
        config, which is copied
    passes : how many thinned networks are averaged
    seed : of what they drop
    shift : (K,) what is taken off the logits, or None

    Examples
    --------
    >>> import torch
    >>> from calibrant.models import MLP, MCDropout
    >>> model = MCDropout(MLP(3, 2), passes=5).eval()
    >>> x = torch.ones(1, 3)
    >>> bool(torch.equal(model(x), model(x)))
    True

    References
    ----------
    Gal and Ghahramani (2016), Dropout as a Bayesian approximation; Durasov et al. (2021),
    Masksembles for uncertainty estimation, for fixed masks.
    """

    shift: Tensor | None

    def __init__(
        self,
        member: Mapping[str, Any] | nn.Module,
        passes: int = 20,
        seed: int = 0,
        shift: Any = None,
    ) -> None:
        super().__init__()
        check_counts(passes=passes)
        check_counts(seed=seed, least=0)
        network, config = as_network(member, "member")
        self.passes = passes
        self.seed = seed
        self.config: dict[str, Any] = {
            "model": "mc_dropout",
            "member": config,
            "passes": passes,
            "seed": seed,
        }
        self.register_buffer("shift", None)
        if shift is not None:
            self.shift = as_shifts(shift, "shift")
            self.config["shift"] = self.shift.tolist()
        self.member = copy.deepcopy(network)
        _thin(self.member, config["model"])

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return logits (b, K)."""
        if self.training:
            return subtract_shift(self.member(*inputs), self.shift)
        logits = torch.stack([self._run_pass(number, *inputs) for number in range(self.passes)])
        return mean_logits(subtract_shift(logits, self.shift))

    def _run_pass(self, number: int, *inputs: Tensor) -> Tensor:
        with _in_pass(self.seed, number):
            logits: Tensor = self.member(*inputs)
        return logits


class _ThinnedDropout(Dropout):
    """Dropout with the fixed mask of the current pass."""

    def __init__(self, p: float, layer: int) -> None:
        super().__init__(p)
        self.layer = layer

    def forward(self, values: Tensor) -> Tensor:
        current = _PASS.get()
        if self.training or current is None:
            return super().forward(values)
        axis = 1 if values.ndim >= 4 else values.ndim - 1
        features = _draw_features((*current, self.layer), values.shape[axis], self.p)
        mask = torch.from_numpy(features).to(values) / ((1.0 - self.p) or 1.0)
        return values * mask.view(-1, *(1,) * (values.ndim - 1 - axis))


@contextmanager
def _in_pass(seed: int, number: int) -> Iterator[None]:
    before = _PASS.set((seed, number))
    try:
        yield
    finally:
        _PASS.reset(before)


@functools.lru_cache(maxsize=1024)
def _draw_features(drawn_from: tuple[int, int, int], width: int, share: float) -> NDArray[np.bool_]:
    """Return the mask of features that a pass keeps, drawn on the CPU to be device-independent.

    An array, because a tensor created in inference mode cannot be used in training later.
    """
    start = np.random.SeedSequence(drawn_from).generate_state(1, np.uint64)[0]
    draw = torch.Generator().manual_seed(int(start))
    return np.asarray((torch.rand(width, generator=draw, dtype=torch.float64) >= share).numpy())


def _thin(network: nn.Module, called: str) -> None:
    """Replace each active dropout layer by one with fixed masks."""
    layers = [part for part in network.modules() if isinstance(part, nn.Dropout) and part.p > 0]
    if not layers:
        raise InputError(
            f"{called} has no dropout to keep on: choose a network with dropout, or train this one "
            "with some."
        )
    if any(isinstance(part, MCDropout | _ThinnedDropout) for part in network.modules()):
        raise InputError(f"{called} keeps its dropout on already: give more passes instead.")
    thinned = {part: _ThinnedDropout(part.p, place) for place, part in enumerate(layers)}
    for parent in list(network.modules()):
        for name, child in parent._modules.items():  # a layer may occur twice
            if child in thinned:
                parent._modules[name] = thinned[child]
