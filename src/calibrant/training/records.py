"""What a training run leaves behind: one record per epoch, and the run as a whole."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from torch import nn

__all__ = ["EpochRecord", "Trained"]


@dataclass(frozen=True)
class EpochRecord:
    """The figures of one epoch.

    Parameters
    ----------
    epoch : counted from 0
    loss : mean training loss
    nll : log loss of the steer split
    refinement : log loss of the steer split after temperature scaling on the same rows
    temperature : that temperature
    ece : top-label calibration error of the steer split, 15 equally filled bins
    f1 : macro F1 of the steer split
    accuracy : of the steer split
    learning_rate : at the end of the epoch
    seconds : that the epoch took
    gammas : smallest and largest gamma where the loss has some, else None
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
        """Return the record as plain numbers."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> EpochRecord:
        """Rebuild from `to_dict`."""
        gammas = saved["gammas"]
        return cls(**{**saved, "gammas": None if gammas is None else (gammas[0], gammas[1])})


@dataclass(frozen=True)
class Trained:
    """A finished run.

    Parameters
    ----------
    model : with the weights of the best epoch, in eval mode, on the CPU
    loss : with what it learned (AdaFocal's gammas and their history), on the CPU
    records : one per epoch that was run
    best_epoch : the epoch whose weights were kept
    why : the run ended: "patience" (no improvement for long enough), "epochs" (all were run) or
        "hook" (one asked for it)
    """

    model: nn.Module
    loss: nn.Module
    records: tuple[EpochRecord, ...]
    best_epoch: int
    why: Literal["patience", "epochs", "hook"]
