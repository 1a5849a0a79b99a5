"""Losses whose gamma depends on the bin of confidence that a row falls into."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from calibrant.convert import log_sigmoid
from calibrant.errors import InputError
from calibrant.inputs import FloatArray
from calibrant.losses.base import RowLoss
from calibrant.losses.confidence_bins import even_edges
from calibrant.losses.evaluating import evaluating
from calibrant.losses.gamma_history import GammaHistory
from calibrant.losses.gamma_rules import Learned, check_count
from calibrant.losses.ranks import first_process, gather_made
from calibrant.losses.top_class import SCALES, Scale, ordered, top_rows

__all__ = ["BinnedLoss"]


class BinnedLoss(RowLoss):
    """What losses with one gamma per bin share: edges, updates from the steer split, a history.

    The state (`edges` and what a loss adds to it) is float64 and stays so under `.half()` and
    `.to(dtype)`: an edge that is rounded moves rows from bin to bin. It is a few hundred numbers.

    Parameters
    ----------
    n_bins : number of bins
    update_every : optimiser steps between updates; None for once an epoch
    weight, ignore_index, reduction : see `RowLoss`
    """

    steered: ClassVar[bool] = True
    exact: ClassVar[tuple[str, ...]] = ("edges",)  # buffers that stay float64
    learned: ClassVar[tuple[str, ...]] = ("_table", "edges")
    scale: Scale = "log-odds"
    edges: Tensor
    scale_code: Tensor

    def __init__(self, n_bins: int, *, update_every: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        check_count(n_bins, "n_bins")
        if update_every is not None:
            check_count(update_every, "update_every")
        self.n_bins = int(n_bins)
        self.update_every = update_every
        self._table = torch.empty(0, 5 * self.n_bins - 1, dtype=torch.float64)

    def update(self, logits: Any, labels: Any) -> None:
        """Learn from the steer split; on several processes each gives its own rows.

        All processes end with the same state, to the bit that of one process with all rows. On an
        error nothing has changed, on no process.
        """
        self._learn(lambda: self._rows_of(logits, labels))

    def update_with(self, model: nn.Module, batches: Iterable[Any]) -> None:
        """Score the steer split with a model, and learn from it: for training loops of your own.

        The model is in eval mode and without gradients meanwhile; every part of it gets its own
        mode back afterwards, on an error too.

        Examples
        --------
        >>> import torch
        >>> from calibrant.losses import AdaFocalLoss
        >>> loss = AdaFocalLoss()
        >>> loss.update_with(torch.nn.Identity(), [(torch.randn(64, 3), torch.zeros(64).long())])
        >>> len(loss.history)
        1
        """

        def rows() -> Tensor:
            with evaluating(model), torch.no_grad():
                parts = [self._rows_of(_scored(model, inputs), y) for *_, inputs, y in batches]
            return torch.cat(parts) if parts else torch.empty(0, 3, dtype=torch.float64)

        self._learn(rows)

    @property
    def history(self) -> GammaHistory:
        """What bins and gammas did so far, one row for each update."""
        table = self._table.numpy().copy()
        if self.scale == "log-odds":
            edges = table[:, : self.n_bins - 1]
            edges[...] = np.exp(log_sigmoid(edges))
        return GammaHistory.from_table(table, self.n_bins)

    def get_extra_state(self) -> Tensor:
        """Return the history for `state_dict`."""
        return self._table

    def set_extra_state(self, state: Tensor) -> None:
        """Take up the history of a `state_dict`."""
        width = 5 * self.n_bins - 1
        if not isinstance(state, Tensor) or state.ndim != 2 or state.shape[1] != width:
            raise InputError(
                f"the saved history of this loss must be a table of {width} columns for "
                f"{self.n_bins} bins, got {getattr(state, 'shape', type(state).__name__)!s}."
            )
        self._table = state.detach().to("cpu", torch.float64, copy=True)

    def _learned(self, scores: FloatArray, right: NDArray[np.bool_]) -> Learned:
        """Return new edges, the figures of the bins, and each bin's gamma; change nothing."""
        raise NotImplementedError

    def _adopt(self, found: GammaHistory) -> None:
        """Take up what an update found, beside the edges."""
        raise NotImplementedError

    def _learn(self, make: Callable[[], Tensor]) -> None:
        rows = gather_made(make)
        if not len(rows):
            raise InputError(
                "the steer split is empty, so there is nothing to learn from: give it rows that "
                "are not ignored."
            )
        edges, figures, gammas = self._learned(*ordered(rows))
        columns = (edges, figures.count, gammas, figures.confidence, figures.accuracy)
        table = first_process(torch.from_numpy(np.concatenate(columns)).unsqueeze(0))
        self.edges.copy_(table[0, : self.n_bins - 1])
        self._adopt(GammaHistory.from_table(table.numpy(), self.n_bins))
        self._table = torch.cat([self._table, table])

    def _rows_of(self, logits: Any, labels: Any) -> Tensor:
        return top_rows(logits, labels, scale=self.scale, ignore_index=self.ignore_index)

    def _start_bins(self) -> None:
        """Begin with bins of equal width."""
        edges = even_edges(self.n_bins, self.scale)
        self.register_buffer("edges", torch.from_numpy(edges))
        self.register_buffer("scale_code", torch.tensor(SCALES.index(self.scale)))

    def _load_from_state_dict(self, state: Any, prefix: str, *others: Any) -> None:
        """Refuse edges that are on another scale than this loss looks them up on."""
        code = int(state.get(f"{prefix}scale_code", self.scale_code))
        if SCALES[code] != self.scale:
            raise InputError(
                f"the saved edges of this loss are {SCALES[code]} edges, not {self.scale} edges: "
                "make the loss with the mode that it was saved with."
            )
        super()._load_from_state_dict(state, prefix, *others)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Follow a move to another device, but not to another precision."""
        kept = {name: self._buffers[name] for name in self.exact}
        for name, value in kept.items():
            assert value is not None
            self._buffers[name] = value.float()  # so that a device without float64 takes it
        try:
            super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        except BaseException:
            self._buffers.update(kept)
            raise
        for name, value in kept.items():
            moved = self._buffers[name]
            assert value is not None
            assert moved is not None
            dtype = torch.float32 if moved.device.type == "mps" else torch.float64
            self._buffers[name] = value.cpu().to(dtype).to(moved.device)
        return self


def _scored(model: nn.Module, inputs: Any) -> Tensor:
    device = next((part.device for part in model.parameters()), None)
    several = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    placed = (
        part.to(device) if isinstance(part, Tensor) and device is not None else part
        for part in several
    )
    found: Tensor = model(*placed)
    return found
