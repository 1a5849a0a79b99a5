"""How to train: every knob of the loop in one frozen object."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from calibrant.errors import InputError

__all__ = ["ChooseBy", "Optimizer", "Precision", "Schedule", "TrainingOptions"]

Optimizer = Literal["adam", "adamw", "sgd"]
Schedule = Literal["constant", "cosine", "linear", "steps"]
ChooseBy = Literal["refinement", "nll", "f1"]
Precision = Literal["32-true", "64-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true"]


@dataclass(frozen=True)
class TrainingOptions:
    """Options of `train`.

    Parameters
    ----------
    epochs : most epochs to train
    batch_size : rows per optimiser step, over all processes together
    optimizer : "adam", "adamw" or "sgd"
    learning_rate : at its height
    weight_decay : of the optimiser
    momentum : of "sgd"
    schedule : of the learning rate over the run: "constant", "cosine" and "linear" fall to 0,
        "steps" multiplies it by `drop` at each of `milestones` (epochs)
    milestones, drop : of the schedule "steps"
    warmup : share of the run over which the learning rate rises from 0
    clip : largest norm of the gradient; None for any
    precision : "32-true", "bf16-mixed", "16-mixed" (GPU), "64-true", ...
    patience : epochs without improvement after which to stop; None to run them all
    min_delta : by how much the figure must improve to count
    choose_by : which figure of the steer split picks the epoch that is kept: "refinement" (log loss
        after temperature scaling: what a calibrator cannot repair later), "nll" or "f1" (macro)
    seed : of the order of rows and of dropout
    device : "auto", "cpu", "cuda", "cuda:1"
    devices : processes; more than one needs `torchrun` or a script that can be started again

    Examples
    --------
    >>> from calibrant.training import TrainingOptions
    >>> TrainingOptions(epochs=0)
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: epochs must be a whole number of at least 1, got 0.
    """

    epochs: int = 100
    batch_size: int = 64
    optimizer: Optimizer = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    momentum: float = 0.9
    schedule: Schedule = "constant"
    milestones: tuple[int, ...] = ()
    drop: float = 0.1
    warmup: float = 0.0
    clip: float | None = None
    precision: Precision = "32-true"
    patience: int | None = 10
    min_delta: float = 1e-4
    choose_by: ChooseBy = "refinement"
    seed: int = 0
    device: str = "auto"
    devices: int = 1

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("batch_size", 1), ("devices", 1), ("seed", 0)):
            _whole(name, getattr(self, name), least)
        if self.patience is not None:
            _whole("patience", self.patience, 1)
        _number("learning_rate", self.learning_rate, above=0.0)
        _number("weight_decay", self.weight_decay)
        _number("min_delta", self.min_delta)
        if self.clip is not None:
            _number("clip", self.clip, above=0.0)
        for name, value in (("warmup", self.warmup), ("momentum", self.momentum)):
            if not 0 <= value < 1:
                raise InputError(f"{name} must lie in [0, 1), got {value!r}.")
        for name, kind in _CHOICES.items():
            _choice(name, getattr(self, name), get_args(kind))
        if self.schedule == "steps" and not self.milestones:
            raise InputError('schedule="steps" needs milestones: the epochs at which to drop.')

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain values."""
        return {**asdict(self), "milestones": list(self.milestones)}


_CHOICES = {
    "optimizer": Optimizer,
    "schedule": Schedule,
    "choose_by": ChooseBy,
    "precision": Precision,
}


def _choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def _whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or int(value) != value or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.")


def _number(name: str, value: float, above: float | None = None) -> None:
    if not math.isfinite(value) or value < 0 or (above is not None and value <= above):
        rule = "above 0" if above is not None else "of at least 0"
        raise InputError(f"{name} must be a finite number {rule}, got {value!r}.")
