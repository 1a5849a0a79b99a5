"""Checks of single settings."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

from calibrant.errors import InputError
from calibrant.inputs import as_seed

_FLAGS = {
    "categories": "--category",
    "model_options": "--model-option",
    "actions": "--action",
    "data": "DATA",
    "redact": "--no-redact",
}


def flag_name(name: str) -> str:
    """Return the flag of a setting.

    Examples
    --------
    >>> flag_name("out_of_scope"), flag_name("categories")
    ('--out-of-scope', '--category')
    """
    return _FLAGS.get(name, f"--{name.replace('_', '-')}")


def suggest(name: Any, known: Sequence[str]) -> str:
    """Return " (did you mean 'x'?)", or "" if no known name is close."""
    near = get_close_matches(str(name), known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def check_text(name: str, value: Any, *, like: str) -> str:
    """Return a non-blank text; a path is converted to text."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{name} must be text like {like!r}, got {value!r}.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(
            f"{name} contains bytes that are not UTF-8 text, got {text!r}: rename it first."
        ) from None
    return text


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return a value that is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(
            f"{name} must be one of {', '.join(choices)}, got {value!r}{suggest(value, choices)}."
        )
    return value


def check_largest_weight(largest: Any, *, weighted: bool) -> None:
    """Raise `InputError` for an invalid largest weight, or one without weights.

    Examples
    --------
    >>> check_largest_weight(20, weighted=True)
    >>> check_largest_weight(20, weighted=False)
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: largest_weight is about the weights of a golden set, but no weights
    are given: add --golden and --weight.
    """
    if largest is None:
        return
    number = isinstance(largest, Real) and not isinstance(largest, bool)
    if not number or not 1 <= largest < math.inf:
        raise InputError(
            f"largest_weight must be a finite number of at least 1, got {largest!r}: it is the "
            "inverse of the smallest inclusion probability."
        )
    if not weighted:
        raise InputError(
            "largest_weight is about the weights of a golden set, but no weights are given: add "
            "--golden and --weight."
        )


def check_texts(name: str, value: Any, *, like: str, blank: bool = False) -> tuple[str, ...]:
    """Return distinct texts; a single string raises `InputError`, as it is not a list.

    With `blank`, a text may be empty: the name of a column without one.
    """
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InputError(f'{name} must be a list like ["{like}"], got {value!r}.')
    texts = tuple(
        "" if blank and text == "" else check_text(f"each of {name}", text, like=like).strip()
        for text in value
    )
    repeated = next((text for i, text in enumerate(texts) if text in texts[:i]), None)
    if repeated is not None:
        raise InputError(f"{name} names {repeated!r} twice: name it once.")
    return texts


def check_integer(name: str, value: Any, *, least: int) -> int:
    """Return an integer of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def check_seeds(value: Any) -> tuple[int, ...]:
    """Return distinct seeds, at least one of them."""
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise InputError(f"seeds must be a list like [0, 1, 2], got {value!r}.")
    seeds = tuple(as_seed(seed, name="each of seeds") for seed in value)
    if len(set(seeds)) < len(seeds):
        raise InputError(f"seeds must be distinct, got {list(seeds)}: remove the repeated ones.")
    return seeds


def parse_shares(value: Any, *, name: str = "shares") -> tuple[float, float, float]:
    """Return three positive numbers from "8:1:1" or [8, 1, 1].

    Examples
    --------
    >>> parse_shares("8:1:1")
    (8.0, 1.0, 1.0)
    """
    parts = value.split(":") if isinstance(value, str) else value
    try:
        shares = tuple(float(part) for part in parts if not isinstance(part, bool))
    except (TypeError, ValueError):
        shares = ()
    if len(shares) != 3 or not all(0 < share < math.inf for share in shares):
        raise InputError(
            f"{name} must be three positive numbers like 8:1:1 (train, steer and choice, held "
            f"out), got {value!r}."
        )
    return shares[0], shares[1], shares[2]


def check_bool(name: str, value: Any) -> bool:
    """Return a bool."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be true or false, got {value!r}.")
    return value


def check_averages(ensemble: Any, mc_dropout: Any, seeds: Sequence[int]) -> dict[str, Any]:
    """Return the settings `ensemble` and `mc_dropout`.

    Examples
    --------
    >>> check_averages(True, 20, (0, 1))
    {'ensemble': True, 'mc_dropout': 20}
    >>> check_averages(True, 0, (0,))
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: ensemble averages the networks of several seeds, but there is only
    one: give more, like --seeds 0,1,2, or leave --ensemble out.
    """
    if check_bool("ensemble", ensemble) and len(seeds) < 2:
        raise InputError(
            "ensemble averages the networks of several seeds, but there is only one: give more, "
            "like --seeds 0,1,2, or leave --ensemble out."
        )
    passes = check_integer("mc_dropout", mc_dropout, least=0)
    if passes == 1:
        raise InputError(
            "mc_dropout must be 0, or a whole number of at least 2, got 1: one pass is not an "
            "average; 20 is a common choice."
        )
    return {"ensemble": ensemble, "mc_dropout": passes}


def check_options(name: str, value: Any) -> dict[str, Any]:
    """Return a dict with text keys."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InputError(f"{name} must map names to values, got {value!r}.")
    return dict(value)


def check_confidence(value: Any) -> float:
    """Return a number strictly between 0 and 1."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 < value < 1:
        raise InputError(f"confidence must be between 0 and 1, got {value!r}: 0.95 is common.")
    return float(value)
