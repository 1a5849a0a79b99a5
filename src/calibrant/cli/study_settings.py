"""The settings of a study from the command line: flags and variables first, then the toml file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from calibrant.errors import InputError

__all__ = [
    "actions_of",
    "gather",
    "loop_of",
    "options_of",
    "seeds_of",
    "split_candidates",
    "value_of",
]

_KINDS = ("text", "tabular", "images")
_TABLES = ("model_options", "training", "actions")  # merged key by key
_LOSS = re.compile(r"\s*(?:[-+.\deE]+\s*\*\s*)?[A-Za-z_][\w.]*\s*(?:[:+]|$)")


def gather(given: Mapping[str, Any], config: Path | None, *, tabular: bool) -> dict[str, Any]:
    """Return the settings that hold: what was given, else what the toml file says."""
    flags = {name: value for name, value in given.items() if value not in (None, {})}
    flags |= {"tabular": True} if tabular else {}
    chosen = _kinds(flags)
    if len(chosen) > 1:
        raise InputError(f"{chosen[0]} and {chosen[1]} exclude each other: give one of them.")
    saved = {} if config is None else _read(config)
    if chosen:
        saved = _of_another_kind(saved, images="images" in flags)
    found = {**saved, **flags}
    if found.get("images") is not True:
        found.setdefault("label", "label")
    elif flags.get("redact"):  # it is what holds anyway, so the settings cannot tell
        raise InputError("--redact is about texts, but the rows are images: leave it out.")
    for name in _TABLES:
        if isinstance(saved.get(name), Mapping) and name in flags:
            found[name] = {**saved[name], **flags[name]}
    if "data" not in found:
        raise InputError(
            "DATA is missing: name the file with the labelled rows, like calibrant train "
            "tickets.csv, or a toml file that names it with --config."
        )
    return found


def _kinds(flags: Mapping[str, Any]) -> list[str]:
    """Return the flags that say what the rows are."""
    text = [f"--text {flags['text']}"] if "text" in flags else []
    return text + [f"--{name}" for name in ("tabular", "images") if flags.get(name)]


def _of_another_kind(saved: Mapping[str, Any], *, images: bool) -> dict[str, Any]:
    """Return settings of a file without what they say about the kind of rows; a flag says it."""
    column = ("label",) if images and not saved.get("images") else ()
    return {name: value for name, value in saved.items() if name not in (*_KINDS, *column)}


def _read(config: Path) -> dict[str, Any]:
    from calibrant.study.settings.config_file import read_config

    return read_config(config)


def split_candidates(given: Iterable[str]) -> list[str]:
    """Split at commas, but for those within the options of a loss.

    A piece that is no name of a loss, like `momentum=0.9`, belongs to the loss before it.

    Examples
    --------
    >>> split_candidates(["ce,flsd:gammas=[5,3],edges=[0.5],0.5*ce + 0.5*soft_f1", "adafocal"])
    ['ce', 'flsd:gammas=[5,3],edges=[0.5]', '0.5*ce + 0.5*soft_f1', 'adafocal']
    """
    found: list[str] = []
    for text in given:
        first = len(found)
        for piece in _outside_brackets(text):
            if len(found) > first and _LOSS.match(piece) is None:
                found[-1] += f",{piece}"
            else:
                found.append(piece.strip())
    return [loss.strip() for loss in found]


def _outside_brackets(text: str) -> list[str]:
    pieces, depth = [""], 0
    for sign in text:
        depth += (sign in "[{(") - (sign in "]})")
        if sign == "," and depth <= 0:
            pieces.append("")
        else:
            pieces[-1] += sign
    if len(pieces) > 1 and not pieces[-1].strip():
        pieces.pop()  # a comma at the end
    return pieces


def seeds_of(text: str | None) -> list[int] | None:
    """Read `0,1,2`.

    Examples
    --------
    >>> seeds_of("0, 1")
    [0, 1]
    """
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--seeds must be whole numbers like 0,1,2, got {text!r}: put commas between them."
        ) from None


def options_of(given: Iterable[str], *, flag: str) -> dict[str, Any]:
    """Read `key=value` of every repetition of a flag.

    Examples
    --------
    >>> options_of(["hidden=[64,32]", "batch_norm=false"], flag="--model-option")
    {'hidden': [64, 32], 'batch_norm': False}
    """
    found: dict[str, Any] = {}
    for text in given:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise InputError(f"{flag} {text!r} must read key=value, like {flag} hidden=64.")
        if key in found:
            raise InputError(f"{flag} sets {key!r} twice: set it once.")
        found[key] = value_of(value)
    return found


def loop_of(
    given: Iterable[str], named: Mapping[str, Any], variables: Iterable[str]
) -> dict[str, Any]:
    """Read the options of the training: those of --training, and those with flags of their own.

    Examples
    --------
    >>> loop_of(["clip=1"], {"epochs": 5, "patience": "none"}, ())
    {'clip': 1, 'epochs': 5, 'patience': None}
    """
    found = options_of(given, flag="--training")
    for key, value in named.items():
        if value is None or (key in found and key in variables):
            continue
        if key in found:
            flag = f"--{key.replace('_', '-')}"
            raise InputError(f"{flag} and --training {key}=... both set {key!r}: set it once.")
        found[key] = value_of(value) if isinstance(value, str) else value
    return found


def value_of(text: str) -> Any:
    """Read a number, a list in brackets, true, false or none; anything else is text.

    Examples
    --------
    >>> [value_of(text) for text in ("64", "1e-3", "[8,4]", "true", "None", "adamw")]
    [64, 0.001, [8, 4], True, None, 'adamw']
    """
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.strip().lower() in words:
        return words[text.strip().lower()]
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text


def actions_of(given: Iterable[str]) -> dict[str, str]:
    """Read `CLASS=NAME`; the first = ends the class, for the classes are not known yet.

    Examples
    --------
    >>> actions_of(["item_defective=refund, priority=high"])
    {'item_defective': 'refund, priority=high'}
    """
    found: dict[str, str] = {}
    for text in given:
        of, equals, name = (part.strip() for part in text.partition("="))
        if not (of and equals and name):
            raise InputError(
                f"--action {text!r} is no action: write it like --action 'item_defective=refund'."
            )
        if of in found:
            raise InputError(f"--action names {of!r} twice: give each class one action.")
        found[of] = name
    return found
