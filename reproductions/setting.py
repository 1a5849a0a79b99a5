"""What a run was made with, to tell runs of different configs apart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reproductions.experiment import Experiment, Method

__all__ = ["differences", "own_options", "setting_of"]

_ANYWHERE = ("device", "devices", "seed")
"""Options that do not make a run another one."""


def setting_of(
    experiment: Experiment, method: Method, given: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return data, how they are read and every option of a run, as plain values.

    Parameters
    ----------
    experiment : at the size of the run
    method : of the experiment
    given : options of the command line

    Examples
    --------
    >>> from reproductions.experiment import experiment_named
    >>> one = experiment_named("newsgroups-cnn")
    >>> made = setting_of(one, one.methods[0], {"epochs": 5, "device": "cpu"})
    >>> made["loss"], made["epochs"], "device" in made
    ('ce', 5, False)
    """
    told = {
        **own_options(experiment.options_of(method, given)),
        "data": experiment.data,
        "reading": dict(experiment.reading),
    }
    if experiment.own_choice:  # left out where it is not: earlier records do not know of it
        told["own_choice"] = True
    found: dict[str, Any] = json.loads(json.dumps(told, sort_keys=True, default=str))
    return found


def own_options(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return those options that make a run another one."""
    return {name: value for name, value in (given or {}).items() if name not in _ANYWHERE}


def differences(found: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Say where two settings differ, or return "" where they do not.

    Examples
    --------
    >>> differences({"epochs": 3, "loss": "ce"}, {"epochs": 5, "loss": "ce"})
    'epochs 3 instead of 5'
    """
    names = [name for name in {**asked, **found} if found.get(name) != asked.get(name)]
    shown = (
        f"{name} {_value(found.get(name))} instead of {_value(asked.get(name))}" for name in names
    )
    return ", ".join(shown)


def _value(value: Any) -> str:
    return "not set" if value is None else str(value)
