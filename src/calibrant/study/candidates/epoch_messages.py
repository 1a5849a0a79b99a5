"""Tell how a candidate's training goes, one line after each epoch."""

from __future__ import annotations

from collections.abc import Callable

from calibrant.training.hooks import Hook, Run
from calibrant.training.records import EpochRecord

__all__ = ["EpochMessages"]


class EpochMessages(Hook):
    """Call a function with a sentence after each epoch; of several processes the first one does.

    Parameters
    ----------
    name : of the candidate
    epochs : the most that will be run
    tell : gets the sentence
    """

    def __init__(self, name: str, epochs: int, tell: Callable[[str], None]) -> None:
        self.name = name
        self.epochs = epochs
        self.tell = tell

    def on_epoch_end(self, run: Run, record: EpochRecord) -> None:
        """Tell the figures of the epoch."""
        if not run.fabric.is_global_zero:
            return
        self.tell(
            f"{self.name}: epoch {record.epoch + 1} of {self.epochs}, log loss {record.nll:.3f}, "
            f"accuracy {record.accuracy:.1%}"
        )
