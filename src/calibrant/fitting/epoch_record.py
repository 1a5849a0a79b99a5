"""Record of one epoch of training, or of one evaluation of boosting."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


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
