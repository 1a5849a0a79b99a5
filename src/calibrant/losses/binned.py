"""Base class of losses with one gamma per confidence bin."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from calibrant.convert import log_sigmoid
from calibrant.errors import InputError
from calibrant.fitting.confidence_bins import SCALES, Scale, even_edges
from calibrant.fitting.gamma_history import GammaHistory
from calibrant.fitting.gamma_rules import BinUpdate, check_count
from calibrant.inputs import FloatArray
from calibrant.losses.base import RowLoss
from calibrant.losses.evaluating import eval_mode
from calibrant.losses.ranks import broadcast_first, compute_and_gather
from calibrant.losses.top_class import sort_rows, top_rows


class BinnedLoss(RowLoss):
    """Base class of losses with one gamma per bin: edges, updates and history.

    The state (`edges` and further buffers) stays float64 under `.half()` and `.to(dtype)`: a
    rounded edge would move rows between bins.

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
        """Update from the steer split; with several processes each passes its own rows.

        All processes end with the same state, equal to the bit to that of one process with all
        rows. On an error no process changes its state.
        """
        self._update_from(lambda: self._top_rows(logits, labels))

    def update_with(self, model: nn.Module, batches: Iterable[Any]) -> None:
        """Score the steer split with a model and update from it, for custom training loops.

        The model runs in eval mode without gradients; the mode of each of its modules is restored
        afterwards, also on an error.
        """

        def rows() -> Tensor:
            with eval_mode(model), torch.no_grad():
                parts = [
                    self._top_rows(_score_inputs(model, inputs), y) for *_, inputs, y in batches
                ]
            return torch.cat(parts) if parts else torch.empty(0, 3, dtype=torch.float64)

        self._update_from(rows)

    @property
    def history(self) -> GammaHistory:
        """Bins and gammas of all updates, one row per update."""
        table = self._table.numpy().copy()
        if self.scale == "log-odds":
            edges = table[:, : self.n_bins - 1]
            edges[...] = np.exp(log_sigmoid(edges))
        return GammaHistory.from_table(table, self.n_bins)

    def get_extra_state(self) -> Tensor:
        """Return the history for `state_dict`."""
        return self._table

    def set_extra_state(self, state: Tensor) -> None:
        """Load the history from a `state_dict`."""
        width = 5 * self.n_bins - 1
        if not isinstance(state, Tensor) or state.ndim != 2 or state.shape[1] != width:
            raise InputError(
                f"the saved history of this loss must be a table of {width} columns for "
                f"{self.n_bins} bins, got {getattr(state, 'shape', type(state).__name__)!s}."
            )
        self._table = state.detach().to("cpu", torch.float64, copy=True)

    def _compute_update(self, scores: FloatArray, right: NDArray[np.bool_]) -> BinUpdate:
        """Return new edges, the figures of the bins, and new gammas, without changing the state."""
        raise NotImplementedError

    def _apply_update(self, update: GammaHistory) -> None:
        """Set the state of an update, except for the edges."""
        raise NotImplementedError

    def _update_from(self, make: Callable[[], Tensor]) -> None:
        rows = compute_and_gather(make)
        if not len(rows):
            raise InputError(
                "the steer split is empty, so the loss cannot be updated: pass rows that are not "
                "ignored."
            )
        edges, figures, gammas = self._compute_update(*sort_rows(rows))
        columns = (edges, figures.count, gammas, figures.confidence, figures.accuracy)
        table = broadcast_first(torch.from_numpy(np.concatenate(columns)).unsqueeze(0))
        self.edges.copy_(table[0, : self.n_bins - 1])
        self._apply_update(GammaHistory.from_table(table.numpy(), self.n_bins))
        self._table = torch.cat([self._table, table])

    def _top_rows(self, logits: Any, labels: Any) -> Tensor:
        return top_rows(logits, labels, scale=self.scale, ignore_index=self.ignore_index)

    def _start_bins(self) -> None:
        """Initialise bins of equal width."""
        edges = even_edges(self.n_bins, self.scale)
        self.register_buffer("edges", torch.from_numpy(edges))
        self.register_buffer("scale_code", torch.tensor(SCALES.index(self.scale)))

    def _load_from_state_dict(self, state: Any, prefix: str, *others: Any) -> None:
        """Refuse edges on another scale than that of this loss."""
        code = int(state.get(f"{prefix}scale_code", self.scale_code))
        if SCALES[code] != self.scale:
            raise InputError(
                f"the saved edges of this loss are {SCALES[code]} edges, not {self.scale} edges: "
                "create the loss with the mode that it was saved with."
            )
        super()._load_from_state_dict(state, prefix, *others)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Apply changes of device, but not of precision."""
        exact_buffers = {name: self._buffers[name] for name in self.exact}
        for name, value in exact_buffers.items():
            assert value is not None
            self._buffers[name] = value.float()  # for devices without float64
        try:
            super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        except BaseException:
            self._buffers.update(exact_buffers)
            raise
        for name, value in exact_buffers.items():
            moved = self._buffers[name]
            assert value is not None
            assert moved is not None
            dtype = torch.float32 if moved.device.type == "mps" else torch.float64
            self._buffers[name] = value.cpu().to(dtype).to(moved.device)
        return self


def _score_inputs(model: nn.Module, inputs: Any) -> Tensor:
    device = next((part.device for part in model.parameters()), None)
    parts = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    moved = (
        part.to(device) if isinstance(part, Tensor) and device is not None else part
        for part in parts
    )
    logits: Tensor = model(*moved)
    return logits
