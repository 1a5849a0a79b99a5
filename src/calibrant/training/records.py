"""Result of a training run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import nn

from calibrant.fitting.epoch_record import EpochRecord


@dataclass(frozen=True)
class TrainingResult:
    """A finished run.

    Parameters
    ----------
    model : the model with the weights of the best epoch, in eval mode, on the CPU
    loss : the trained loss (with AdaFocal's gammas and their history), on the CPU
    records : one per epoch
    best_epoch : the epoch whose weights were restored
    why : reason for the end of the run: "patience" (no improvement for `patience` epochs), "epochs"
        (all epochs done) or "hook" (a hook set `run.stop`)
    """

    model: nn.Module
    loss: nn.Module
    records: tuple[EpochRecord, ...]
    best_epoch: int
    why: Literal["patience", "epochs", "hook"]
