"""Checks of single settings: what is wrong is told in one sentence with the setting's name."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

from calibrant.errors import InputError
from calibrant.inputs import as_seed

__all__ = [
    "averages_of",
    "check_choice",
    "check_text",
    "check_weighted",
    "confidence_of",
    "flag_of",
    "nearest",
    "options_of",
    "seeds_of",
    "shares_of",
    "texts_of",
    "truth_of",
    "whole_of",
]

_FLAGS = {
    "categories": "--category",
    "model_options": "--model-option",
    "actions": "--action",
    "data": "DATA",
    "redact": "--no-redact",
}


def flag_of(name: str) -> str:
    """Return the flag of a setting.

    Examples
    --------
    >>> flag_of("out_of_scope"), flag_of("categories")
    ('--out-of-scope', '--category')
    """
    return _FLAGS.get(name, f"--{name.replace('_', '-')}")


def nearest(given: Any, known: Sequence[str]) -> str:
    """Return " (did you mean 'x'?)", or nothing where no name is near."""
    near = get_close_matches(str(given), known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def check_text(name: str, value: Any, *, like: str) -> str:
    """Return a text with something in it; a path becomes text."""
    found = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(found, str) or not found.strip():
        raise InputError(f"{name} must be text like {like!r}, got {value!r}.")
    try:
        found.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(
            f"{name} holds bytes that are no UTF-8 text, got {found!r}: rename it first."
        ) from None
    return found


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Refuse what is not among the choices."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(
            f"{name} must be one of {', '.join(choices)}, got {value!r}{nearest(value, choices)}."
        )
    return value


def check_weighted(largest: Any, *, weighed: bool) -> None:
    """Refuse a largest weight that is none, or that nothing is weighed by.

    Examples
    --------
    >>> check_weighted(20, weighed=True)
    >>> check_weighted(20, weighed=False)
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: largest_weight is about the weights of a golden set, but there are
    none: give --golden and --weight too.
    """
    if largest is None:
        return
    number = isinstance(largest, Real) and not isinstance(largest, bool)
    if not number or not 1 <= largest < math.inf:
        raise InputError(
            f"largest_weight must be a finite number of at least 1, got {largest!r}: it is one "
            "over the smallest chance to be drawn."
        )
    if not weighed:
        raise InputError(
            "largest_weight is about the weights of a golden set, but there are none: give "
            "--golden and --weight too."
        )


def texts_of(name: str, value: Any, *, like: str) -> tuple[str, ...]:
    """Return distinct texts; a lone text is refused, for it would be read letter by letter."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InputError(f'{name} must be a list like ["{like}"], got {value!r}.')
    found = tuple(check_text(f"each of {name}", each, like=like).strip() for each in value)
    twice = next((each for i, each in enumerate(found) if each in found[:i]), None)
    if twice is not None:
        raise InputError(f"{name} names {twice!r} twice: name it once.")
    return found


def whole_of(name: str, value: Any, *, least: int) -> int:
    """Return a whole number of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def seeds_of(value: Any) -> tuple[int, ...]:
    """Return distinct seeds, at least one of them."""
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise InputError(f"seeds must be a list like [0, 1, 2], got {value!r}.")
    found = tuple(as_seed(each, name="each of seeds") for each in value)
    if len(set(found)) < len(found):
        raise InputError(f"seeds must be distinct, got {list(found)}: a seed twice is one run.")
    return found


def shares_of(value: Any, *, name: str = "shares") -> tuple[float, float, float]:
    """Return three positive numbers from "8:1:1" or [8, 1, 1].

    Examples
    --------
    >>> shares_of("8:1:1")
    (8.0, 1.0, 1.0)
    """
    parts = value.split(":") if isinstance(value, str) else value
    try:
        found = tuple(float(part) for part in parts if not isinstance(part, bool))
    except (TypeError, ValueError):
        found = ()
    if len(found) != 3 or not all(0 < part < math.inf for part in found):
        raise InputError(
            f"{name} must be three positive numbers like 8:1:1 (train, steer and choice, held "
            f"out), got {value!r}."
        )
    return found[0], found[1], found[2]


def truth_of(name: str, value: Any) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be true or false, got {value!r}.")
    return value


def averages_of(ensemble: Any, mc_dropout: Any, seeds: Sequence[int]) -> dict[str, Any]:
    """Return what is averaged, by the names of the settings: the seeds' networks, thinned ones.

    Examples
    --------
    >>> averages_of(True, 20, (0, 1))
    {'ensemble': True, 'mc_dropout': 20}
    >>> averages_of(True, 0, (0,))
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: ensemble averages the networks of several seeds, but there is one:
    give more, like --seeds 0,1,2, or leave --ensemble out.
    """
    if truth_of("ensemble", ensemble) and len(seeds) < 2:
        raise InputError(
            "ensemble averages the networks of several seeds, but there is one: give more, like "
            "--seeds 0,1,2, or leave --ensemble out."
        )
    passes = whole_of("mc_dropout", mc_dropout, least=0)
    if passes == 1:
        raise InputError(
            "mc_dropout must be 0 for none, or a whole number of at least 2, got 1: one thinned "
            "network is no average; 20 is usual."
        )
    return {"ensemble": ensemble, "mc_dropout": passes}


def options_of(name: str, value: Any) -> dict[str, Any]:
    """Return a dict whose keys are texts."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InputError(f"{name} must map names to values, got {value!r}.")
    return dict(value)


def confidence_of(value: Any) -> float:
    """Return a share strictly between 0 and 1."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 < value < 1:
        raise InputError(f"confidence must lie between 0 and 1, got {value!r}: 0.95 is usual.")
    return float(value)
