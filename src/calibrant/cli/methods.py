"""How a calibration method is named on the command line: `name:key=value,key=value`."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.calibrators import Calibrator

__all__ = ["method_of", "settings_of"]

_IN_PYTHON = ("chain",)  # made of other calibrators, for which the syntax has no words
_KINDS: dict[type, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "a word"),
}


def method_of(text: str, *, score: str, seed: int) -> Calibrator:
    """Return the calibrator that `--method` asks for, not fitted yet.

    Examples
    --------
    >>> method_of("temperature:objective=ece_mass", score="nll", seed=0)
    TemperatureScaling(objective='ece_mass')
    """
    from calibrant.calibrators import list_methods
    from calibrant.calibrators.choice.auto import AutoCalibrator

    known: dict[str, type[Calibrator]] = {AutoCalibrator.method: AutoCalibrator, **list_methods()}
    name, settings = settings_of(text)
    if name in _IN_PYTHON:
        raise InputError(f"--method {name} is made in Python, with first.then(second): name one.")
    choices = sorted(set(known) - set(_IN_PYTHON))
    if name not in choices:
        raise InputError(
            f"--method {name}: there is no such method{_near(name, choices)}: choose one of "
            f"{', '.join(choices)}."
        )
    made = known[name]
    for key, value in settings.items():
        _check_setting(name, key, value, inspect.signature(made).parameters)
    if isinstance(settings.get("candidates"), str):
        settings["candidates"] = [settings["candidates"]]
    given = {"score": score, "seed": seed} if made is AutoCalibrator else {}
    return made(**{**given, **settings})


def _check_setting(name: str, key: str, value: Any, known: Mapping[str, inspect.Parameter]) -> None:
    """Refuse a setting that the method does not have, or of another type than its default."""
    if key not in known:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise InputError(f"--method {name} has no setting '{key}'{_near(key, list(known))}: {has}.")
    types, words = _KINDS.get(type(known[key].default), ((), ""))
    if value is not None and types and type(value) not in types:
        raise InputError(f"--method {name}: {key} must be {words}, got {value!r}.")


def settings_of(text: str) -> tuple[str, dict[str, Any]]:
    """Split `name:key=value,key=value`; a list is written in square brackets.

    Examples
    --------
    >>> settings_of("prior_correction:source=[0.5,0.5]")
    ('prior_correction', {'source': [0.5, 0.5]})
    >>> settings_of("temperature:objective=ece_mass,n_bins=20")
    ('temperature', {'objective': 'ece_mass', 'n_bins': 20})
    """
    name, colon, rest = text.strip().partition(":")
    settings: dict[str, Any] = {}
    for part in re.split(r",(?![^\[]*\])", rest) if colon else []:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value) or key in settings:
            what = f"'{key}' is set twice" if key in settings else f"'{part}' is no setting"
            raise InputError(f"--method {text}: {what}: write it like {name}:key=value,key=value.")
        settings[key] = _value(value)
    return name.strip(), settings


def _value(text: str) -> Any:
    """Read a number, true, false, none, or a list; anything else is text."""
    if text.startswith("[") and text.endswith("]"):
        return [_value(one.strip()) for one in text[1:-1].split(",") if one.strip()]
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    if not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text):
        return text
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def _near(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""
