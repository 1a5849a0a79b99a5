"""Moments of a training run at which a user's code may look in: empty methods to override."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from calibrant.training.records import EpochRecord

__all__ = ["Hook", "Run"]


@dataclass
class Run:
    """What a hook sees of a training run.

    Parameters
    ----------
    model, loss : the Modules being trained
    fabric : Lightning Fabric, which knows device, precision and ranks
    epoch, step : counted from 0; steps run on over epochs
    records : one `EpochRecord` for each finished epoch
    stop : set it to end the run after the present epoch
    """

    model: nn.Module
    loss: nn.Module
    fabric: Any
    epoch: int = 0
    step: int = 0
    records: list[EpochRecord] = field(default_factory=list)
    stop: bool = False


class Hook:
    """Override what you need; everything here does nothing.

    Tensors are handed over detached. In a run on several processes each process calls its own
    hooks with its own rows. A hook that counts says in `state_dict` what a checkpoint must hold.

    Examples
    --------
    >>> from calibrant.training import Hook
    >>> class GoodEnough(Hook):
    ...     def on_epoch_end(self, run, record):
    ...         run.stop = record.accuracy > 0.99
    """

    def on_train_start(self, run: Run) -> None:
        """Called once, before the first epoch; `run.epoch` is not 0 after a resume."""

    def on_epoch_start(self, run: Run) -> None:
        """Called before the first batch of an epoch; the model is in train mode."""

    def on_batch_end(self, run: Run, logits: Tensor, labels: Tensor) -> None:
        """Called after each optimiser step with the logits it was taken on."""

    def on_steer(self, run: Run, logits: Tensor, labels: Tensor) -> None:
        """Called with this process's part of the steer split, each time it is scored."""

    def on_epoch_end(self, run: Run, record: EpochRecord) -> None:
        """Called after the steer split was measured, and before the epoch is saved."""

    def on_train_end(self, run: Run) -> None:
        """Called once, after the chosen weights were restored."""

    def close(self) -> None:
        """Called at the very end, also after an error or an interruption."""

    def state_dict(self) -> Mapping[str, Any]:
        """Return the plain values and tensors that a resumed run needs.

        Of several processes it is the first whose hooks are asked.
        """
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up what `state_dict` gave; called before `on_train_start` of a resumed run."""
