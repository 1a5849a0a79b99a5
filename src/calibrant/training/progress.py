"""Progress bar of a run: epochs, loss, steer metrics and the range of gammas."""

from __future__ import annotations

import sys
from typing import Any

from torch import Tensor

from calibrant.fitting.epoch_record import EpochRecord
from calibrant.training.hooks import Hook, Run

_EVERY = 20  # batches between two updates


class ProgressBar(Hook):
    """Progress bar on stderr with the metrics of the last epoch, in the first process only.

    Parameters
    ----------
    epochs : number of epochs of the run
    steps : steps per epoch
    console : a rich console; stderr by default

    Examples
    --------
    >>> from calibrant.fitting.epoch_record import EpochRecord
    >>> record = EpochRecord(3, 0.412, 0.398, 0.391, 1.2, 0.021, 0.8, 0.84, 1e-3, 0.2, (-0.2, 4.1))
    >>> format_record(record)
    'loss 0.412 · steer NLL 0.398 · ECE 2.1 % · gamma -0.2 to 4.1'
    """

    def __init__(self, epochs: int, steps: int, console: Any = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.epochs, self.steps, self._done = epochs, max(steps, 1), 0
        columns = (
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(compact=True),
        )
        self._bar = Progress(*columns, console=console or Console(file=sys.stderr), transient=False)
        self._task = self._bar.add_task("", total=epochs * self.steps, epoch="", figures="")

    def on_train_start(self, run: Run) -> None:
        """Start the bar at the first epoch of this run."""
        if run.fabric.is_global_zero:
            self._bar.start()
        self._done = run.epoch * self.steps
        self._show(run.epoch)

    def on_batch_end(self, run: Run, logits: Tensor, labels: Tensor) -> None:
        """Update the bar every few batches: drawing costs more than a small batch."""
        self._done += 1
        if self._done % _EVERY == 0:
            self._bar.update(self._task, completed=self._done)

    def on_epoch_end(self, run: Run, record: EpochRecord) -> None:
        """Show the metrics of the epoch."""
        self._done = (record.epoch + 1) * self.steps
        self._show(record.epoch + 1, format_record(record))

    def close(self) -> None:
        """Stop the bar, also after an error."""
        self._bar.stop()

    def _show(self, epoch: int, figures: str = "") -> None:
        fields: dict[str, Any] = {"completed": self._done, "epoch": f"{epoch}/{self.epochs}"}
        if figures:
            fields["figures"] = figures
        self._bar.update(self._task, **fields)


def format_record(record: EpochRecord) -> str:
    """Return the metrics of an epoch as one line."""
    text = f"loss {record.loss:.3f} · steer NLL {record.nll:.3f} · ECE {record.ece * 100:.1f} %"
    if record.gammas is not None:
        low, high = record.gammas
        text += f" · gamma {low:.2g} to {high:.2g}"
    return text
