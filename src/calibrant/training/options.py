"""Options of the training loop."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import as_seed

Optimizer = Literal["adam", "adamw", "sgd"]
Schedule = Literal["constant", "cosine", "linear", "steps"]
ChooseBy = Literal["refinement", "nll", "f1", "last"]
Average = float | Literal["auto"] | None
Precision = Literal["32-true", "64-true", "bf16-mixed", "16-mixed", "bf16-true", "16-true"]

AUTO_DECAY = 0.996
"""Decay per step of `average="auto"`."""


@dataclass(frozen=True)
class TrainingOptions:
    """Options of `train`.

    Parameters
    ----------
    epochs : maximum number of epochs
    batch_size : rows per optimiser step, over all processes together
    accumulate : number of parts of a batch; their gradients are summed, so the steps stay the same
        and need less memory. Batch norm, and losses of a whole batch (MMCE, soft F1), see the parts
    optimizer : "adam", "adamw" or "sgd"
    learning_rate : peak learning rate
    weight_decay : weight decay of the optimiser
    momentum, nesterov : options of "sgd"
    schedule : schedule of the learning rate: "constant"; "cosine" and "linear" decay to 0; "steps"
        multiplies it by `drop` at each of `milestones` (epochs)
    milestones, drop : options of the schedule "steps"
    warmup : share of the run over which the learning rate rises to its peak
    clip : maximum norm of the gradient; None for no clipping
    precision : "32-true", "bf16-mixed", "16-mixed" (GPU), "64-true", ...
    patience : epochs without improvement after which to stop; None to run them all
    min_delta : minimum improvement of the metric to count
    choose_by : metric of the steer split that chooses the best epoch: "refinement" (log loss after
        temperature scaling, which a calibrator cannot reduce later), "nll" or "f1" (macro); "last"
        uses the last epoch, as many papers do
    average : decay per step of an exponential moving average of the weights, such as 0.996. At the
        end it replaces the weights of the best epoch if it is better on the steer split by the
        metric of `choose_by`; with "last" it replaces them in any case. "auto" is 0.996, replaces
        them only if it is better by more than noise, and averages nothing with "last". None
        averages nothing
    compile : whether to use `torch.compile`; the first steps then take a minute
    seed : seed of the row order and dropout, from 0 to 4294967295
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
    accumulate: int = 1
    optimizer: Optimizer = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    momentum: float = 0.9
    nesterov: bool = False
    schedule: Schedule = "constant"
    milestones: tuple[int, ...] = ()
    drop: float = 0.1
    warmup: float = 0.0
    clip: float | None = None
    precision: Precision = "32-true"
    compile: bool = False
    patience: int | None = 10
    min_delta: float = 1e-4
    choose_by: ChooseBy = "refinement"
    average: Average = None
    seed: int = 0
    device: str = "auto"
    devices: int = 1

    def __post_init__(self) -> None:
        values_by_name: dict[str, Any] = {
            name: self._check_integer(name, least) for name, least in _WHOLE
        }
        values_by_name |= {
            name: self._check_number(name, *bounds) for name, bounds in _NUMBERS.items()
        }
        values_by_name["milestones"] = _check_milestones(self.milestones)
        values_by_name["seed"] = as_seed(self.seed)
        for name, kind in _CHOICES.items():
            _check_choice(name, getattr(self, name), get_args(kind))
        if not isinstance(self.device, str):
            raise InputError(f"device must be a name like 'cpu' or 'cuda:1', got {self.device!r}.")
        for name in _BOOLS:
            values_by_name[name] = _check_bool(name, getattr(self, name))
        if values_by_name["nesterov"] and not values_by_name["momentum"]:
            raise InputError("nesterov=True needs momentum above 0, got momentum 0.")
        if self.schedule == "steps" and not values_by_name["milestones"]:
            raise InputError('schedule="steps" needs milestones: the epochs at which to drop.')
        for name, value in values_by_name.items():  # Python numbers, for checkpoints
            object.__setattr__(self, name, value)

    def _check_integer(self, name: str, least: int) -> int | None:
        value = getattr(self, name)
        if value is None and name in _OPTIONAL:
            return None
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.")
        return int(value)

    def _check_number(self, name: str, rule: str, low: float, high: float) -> Any:
        value = getattr(self, name)
        if name in _OPTIONAL and (value is None or (value == "auto" and name == "average")):
            return value
        fits = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
        if not fits or not low <= value < high:
            raise InputError(f"{name} must {rule}, got {value!r}.")
        return float(value)

    def to_dict(self) -> dict[str, Any]:
        """Return the options as JSON values."""
        return {**asdict(self), "milestones": list(self.milestones)}


_OPTIONAL = ("patience", "clip", "average")
_BOOLS = ("nesterov", "compile")
_WHOLE = (
    ("epochs", 1), ("batch_size", 1), ("accumulate", 1), ("devices", 1), ("patience", 1),
)  # fmt: skip
_LEAST = 5e-324  # the smallest number above 0
_ABOVE = ("be a finite number above 0", _LEAST, math.inf)
_ANY = ("be a finite number of at least 0", 0.0, math.inf)
_SHARE = ("be in [0, 1)", 0.0, 1.0)
_NUMBERS = {
    "learning_rate": _ABOVE,
    "clip": _ABOVE,
    "drop": _ABOVE,
    "weight_decay": _ANY,
    "min_delta": _ANY,
    "momentum": _SHARE,
    "warmup": _SHARE,
    "average": _SHARE,
}
_CHOICES = {
    "optimizer": Optimizer,
    "schedule": Schedule,
    "choose_by": ChooseBy,
    "precision": Precision,
}


def _check_bool(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def _check_milestones(values: Any) -> tuple[int, ...]:
    epochs = tuple(values) if isinstance(values, (list, tuple)) else None
    if epochs is None or not all(
        isinstance(epoch, Integral) and not isinstance(epoch, bool) and int(epoch) >= 0
        for epoch in epochs
    ):
        raise InputError(
            f"milestones must be epochs as whole numbers, like (150, 250), got {values!r}."
        )
    return tuple(int(epoch) for epoch in epochs)
