"""Results of a training run: one record per epoch, and the whole run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from torch import nn


@dataclass(frozen=True)
class EpochRecord:
    """Metrics of one epoch.

    Parameters
    ----------
    epoch : counted from 0
    loss : mean training loss
    nll : log loss of the steer split
    refinement : log loss of the steer split after temperature scaling on the same rows
    temperature : that temperature
    ece : top-label calibration error of the steer split, 15 equal-mass bins
    f1 : macro F1 of the steer split
    accuracy : accuracy of the steer split
    learning_rate : learning rate at the end of the epoch
    seconds : duration of the epoch
    gammas : smallest and largest gamma of a loss that has gammas, else None
    """

    epoch: int
    loss: float
    nll: float
    refinement: float
    temperature: float
    ece: float
    f1: float
    accuracy: float
    learning_rate: float
    seconds: float
    gammas: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> EpochRecord:
        """Rebuild from `to_dict`."""
        gammas = saved["gammas"]
        return cls(**{**saved, "gammas": None if gammas is None else (gammas[0], gammas[1])})


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
