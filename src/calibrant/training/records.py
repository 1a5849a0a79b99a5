"""Result of a training run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from torch import nn

from calibrant.fitting.epoch_record import EpochRecord
from calibrant.fitting.steer_figures import SteerFigure


@dataclass(frozen=True)
class AverageRecord:
    """The moving average of the weights, compared with the best epoch on the steer rows.

    Parameters
    ----------
    taken : whether the model has the averaged weights, not those of the best epoch
    decay : largest decay per step
    figure : figure that they were compared by: that of `choose_by`, or "refinement" with "last"
    best : figure of the best epoch
    averaged : figure of the averaged weights, with batch norm statistics of their own
    error : standard error of the difference, from the paired rows
    """

    taken: bool
    decay: float
    figure: SteerFigure
    best: float
    averaged: float
    error: float

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class TrainingResult:
    """A finished run.

    Parameters
    ----------
    model : the model with the weights of the best epoch or their average over the run (see
        `average`), in eval mode, on the CPU
    loss : the trained loss (with AdaFocal's gammas and their history), on the CPU
    records : one per epoch
    best_epoch : the best epoch on the steer split
    why : reason for the end of the run: "patience" (no improvement for `patience` epochs), "epochs"
        (all epochs done) or "hook" (a hook set `run.stop`)
    average : how the averaged weights compare with the best epoch; None if none were averaged
    """

    model: nn.Module
    loss: nn.Module
    records: tuple[EpochRecord, ...]
    best_epoch: int
    why: Literal["patience", "epochs", "hook"]
    average: AverageRecord | None = None
