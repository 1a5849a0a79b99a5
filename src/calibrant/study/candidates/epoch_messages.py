"""Training hook that reports one line per epoch."""

from __future__ import annotations

from collections.abc import Callable

from calibrant.fitting.epoch_record import EpochRecord
from calibrant.training.hooks import Hook, Run


class EpochMessages(Hook):
    """Call `progress` with one line after each epoch, in the first process only.

    Parameters
    ----------
    name : name of the candidate
    epochs : maximum number of epochs
    progress : called with the message
    """

    def __init__(self, name: str, epochs: int, progress: Callable[[str], None]) -> None:
        self.name = name
        self.epochs = epochs
        self.progress = progress

    def on_epoch_end(self, run: Run, record: EpochRecord) -> None:
        """Report the metrics of the epoch."""
        if not run.fabric.is_global_zero:
            return
        self.progress(
            f"{self.name}: epoch {record.epoch + 1} of {self.epochs}, log loss {record.nll:.3f}, "
            f"accuracy {record.accuracy:.1%}"
        )
