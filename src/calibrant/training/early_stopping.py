"""Early stopping."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from calibrant.training.options import TrainingOptions
from calibrant.training.records import EpochRecord

__all__ = ["Stopping"]


class Stopping:
    """Early stopping with patience, and the weights of the best epoch.

    An epoch is better if it improves the chosen metric of the steer split by more than
    `min_delta`: refinement and log loss must fall, F1 must rise. With "last" every epoch is better
    than the one before.

    Parameters
    ----------
    options : options with `choose_by`, `patience` and `min_delta`

    Examples
    --------
    >>> from calibrant.training import TrainingOptions
    >>> Stopping(TrainingOptions(patience=2)).enough
    False
    """

    def __init__(self, options: TrainingOptions) -> None:
        self.options = options
        self.best_epoch: int | None = None
        self.best_value = float("inf")
        self.best_weights: dict[str, Tensor] = {}
        self.waited = 0

    @property
    def enough(self) -> bool:
        """Whether patience is used up."""
        return self.options.patience is not None and self.waited >= self.options.patience

    def note(self, record: EpochRecord) -> bool:
        """Record an epoch, and return whether it is the best so far."""
        by = self.options.choose_by
        value = record.epoch if by == "last" else getattr(record, by)
        cost = -value if by in ("f1", "last") else value
        # The first epoch always counts, so that there is one to restore.
        first = self.best_epoch is None or by == "last"
        better = first or cost < self.best_value - self.options.min_delta
        if better:
            self.best_epoch, self.best_value, self.waited = record.epoch, cost, 0
        else:
            self.waited += 1
        return better

    def state(self) -> dict[str, Any]:
        """Return the state for a resumed run; the weights are saved separately."""
        best = self.best_value
        return {"best_epoch": self.best_epoch, "best_value": best, "waited": self.waited}

    def load(self, state: dict[str, Any]) -> None:
        """Restore `state`."""
        self.best_epoch, self.best_value = state["best_epoch"], state["best_value"]
        self.waited = state["waited"]
