"""Parser of `--method name:key=value,key=value`."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.calibrators import Calibrator

__all__ = ["parse_method", "split_method"]

_PYTHON_ONLY = ("chain",)  # built from other calibrators
_KINDS: dict[type, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "a word"),
}


def parse_method(text: str, *, score: str, seed: int) -> Calibrator:
    """Return the unfitted calibrator that `--method` names.

    Examples
    --------
    >>> parse_method("temperature:objective=ece_mass", score="nll", seed=0)
    TemperatureScaling(objective='ece_mass')
    """
    from calibrant.calibrators import list_methods
    from calibrant.calibrators.choice.auto import AutoCalibrator

    known: dict[str, type[Calibrator]] = {AutoCalibrator.method: AutoCalibrator, **list_methods()}
    name, settings = split_method(text)
    if name in _PYTHON_ONLY:
        raise InputError(
            f"--method {name} is only available in Python, as first.then(second): name one method."
        )
    choices = sorted(set(known) - set(_PYTHON_ONLY))
    if name not in choices:
        raise InputError(
            f"--method {name}: unknown method{_suggest(name, choices)}: choose one of "
            f"{', '.join(choices)}."
        )
    cls = known[name]
    for key, value in settings.items():
        _check_setting(name, key, value, inspect.signature(cls).parameters)
    if isinstance(settings.get("candidates"), str):
        settings["candidates"] = [settings["candidates"]]
    defaults = {"score": score, "seed": seed} if cls is AutoCalibrator else {}
    return cls(**{**defaults, **settings})


def _check_setting(name: str, key: str, value: Any, known: Mapping[str, inspect.Parameter]) -> None:
    """Refuse an unknown setting, or one whose type differs from the default."""
    if key not in known:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise InputError(
            f"--method {name} has no setting '{key}'{_suggest(key, list(known))}: {has}."
        )
    types, words = _KINDS.get(type(known[key].default), ((), ""))
    if value is not None and types and type(value) not in types:
        raise InputError(f"--method {name}: {key} must be {words}, got {value!r}.")


def split_method(text: str) -> tuple[str, dict[str, Any]]:
    """Split `name:key=value,key=value`; a list is written in square brackets.

    Examples
    --------
    >>> split_method("prior_correction:source=[0.5,0.5]")
    ('prior_correction', {'source': [0.5, 0.5]})
    >>> split_method("temperature:objective=ece_mass,n_bins=20")
    ('temperature', {'objective': 'ece_mass', 'n_bins': 20})
    """
    name, colon, rest = text.strip().partition(":")
    settings: dict[str, Any] = {}
    for part in re.split(r",(?![^\[]*\])", rest) if colon else []:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value) or key in settings:
            what = f"'{key}' is set twice" if key in settings else f"'{part}' is not a setting"
            raise InputError(f"--method {text}: {what}: write it like {name}:key=value,key=value.")
        settings[key] = _parse_value(value)
    return name.strip(), settings


def _parse_value(text: str) -> Any:
    """Parse a number, true, false, none or a list; anything else is text."""
    if text.startswith("[") and text.endswith("]"):
        return [_parse_value(item.strip()) for item in text[1:-1].split(",") if item.strip()]
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    if not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text):
        return text
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def _suggest(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""
