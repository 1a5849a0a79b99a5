"""Hooks: user code that is called during a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from calibrant.fitting.epoch_record import EpochRecord


@dataclass
class Run:
    """State of a training run, as passed to hooks.

    Parameters
    ----------
    model, loss : the Modules being trained
    fabric : Lightning Fabric, with device, precision and ranks
    epoch, step : counted from 0; steps are counted over all epochs
    records : one `EpochRecord` for each finished epoch
    stop : set it to end the run after the current epoch
    """

    model: nn.Module
    loss: nn.Module
    fabric: Any
    epoch: int = 0
    step: int = 0
    records: list[EpochRecord] = field(default_factory=list)
    stop: bool = False


class Hook:
    """Base class of hooks, with methods that do nothing; override those you need.

    Tensors are detached. In a run on several processes each process calls its own hooks with its
    own rows. A hook with state returns it from `state_dict`, to be saved in checkpoints.

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
        """Called after each optimiser step with the logits of its batch."""

    def on_steer(self, run: Run, logits: Tensor, labels: Tensor) -> None:
        """Called with this process's part of the steer split, each time it is scored."""

    def on_epoch_end(self, run: Run, record: EpochRecord) -> None:
        """Called after the steer split is evaluated, before the checkpoint is saved."""

    def on_train_end(self, run: Run) -> None:
        """Called once, after the best weights are restored."""

    def close(self) -> None:
        """Called at the very end, also after an error or an interruption."""

    def state_dict(self) -> Mapping[str, Any]:
        """Return the values and tensors that a resumed run needs; called in the first process."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore `state_dict`; called before `on_train_start` of a resumed run."""
