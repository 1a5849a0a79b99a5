"""Settings of a run, to distinguish runs of different configs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reproductions.experiment import Experiment, Method

__all__ = ["differences", "own_options", "setting_of"]

_ANYWHERE = ("device", "devices", "seed")
"""Options that do not make a run another one."""


def setting_of(
    experiment: Experiment, method: Method, overrides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the data, reading options and training options of a run as JSON values.

    Parameters
    ----------
    experiment : at the size of the run
    method : of the experiment
    overrides : options of the command line

    Examples
    --------
    >>> from reproductions.experiment import experiment_named
    >>> one = experiment_named("newsgroups-cnn")
    >>> made = setting_of(one, one.methods[0], {"epochs": 5, "device": "cpu"})
    >>> made["loss"], made["epochs"], "device" in made
    ('ce', 5, False)
    """
    fields = {
        **own_options(experiment.options_of(method, overrides)),
        "data": experiment.data,
        "reading": dict(experiment.reading),
    }
    if experiment.own_choice:  # left out where it is not: earlier records do not know of it
        fields["own_choice"] = True
    setting: dict[str, Any] = json.loads(json.dumps(fields, sort_keys=True, default=str))
    return setting


def own_options(overrides: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options that change the result of a run."""
    return {name: value for name, value in (overrides or {}).items() if name not in _ANYWHERE}


def differences(actual: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Describe the differences between two settings, or return "".

    Examples
    --------
    >>> differences({"epochs": 3, "loss": "ce"}, {"epochs": 5, "loss": "ce"})
    'epochs 3 instead of 5'
    """
    names = [name for name in {**expected, **actual} if actual.get(name) != expected.get(name)]
    shown = (
        f"{name} {_value(actual.get(name))} instead of {_value(expected.get(name))}"
        for name in names
    )
    return ", ".join(shown)


def _value(value: Any) -> str:
    return "not set" if value is None else str(value)
