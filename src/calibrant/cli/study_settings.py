"""Settings of a study: flags and variables override the TOML file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from calibrant.errors import InputError

__all__ = [
    "merge_settings",
    "parse_actions",
    "parse_options",
    "parse_seeds",
    "parse_training_options",
    "parse_value",
    "split_candidates",
]

_KINDS = ("text", "tabular", "images")
_TABLES = ("model_options", "training", "actions")  # merged key by key
_LOSS = re.compile(r"\s*(?:[-+.\deE]+\s*\*\s*)?[A-Za-z_][\w.]*\s*(?:[:+]|$)")


def merge_settings(
    options: Mapping[str, Any], config: Path | None, *, tabular: bool
) -> dict[str, Any]:
    """Merge options over the settings of the TOML file."""
    flags = {name: value for name, value in options.items() if value not in (None, {})}
    flags |= {"tabular": True} if tabular else {}
    kinds = _kind_flags(flags)
    if len(kinds) > 1:
        raise InputError(f"{kinds[0]} and {kinds[1]} exclude each other: give one of them.")
    saved = {} if config is None else _read_config(config)
    if kinds:
        saved = _drop_kind(saved, images="images" in flags)
    settings = {**saved, **flags}
    if settings.get("images") is not True:
        settings.setdefault("label", "label")
    elif flags.get("redact"):  # the default, so the settings cannot show it
        raise InputError("--redact applies to texts, but the rows are images: leave it out.")
    for name in _TABLES:
        if isinstance(saved.get(name), Mapping) and name in flags:
            settings[name] = {**saved[name], **flags[name]}
    if "data" not in settings:
        raise InputError(
            "DATA is missing: name the file with the labelled rows, like calibrant train "
            "tickets.csv, or a TOML file that names it with --config."
        )
    return settings


def _kind_flags(flags: Mapping[str, Any]) -> list[str]:
    """Return the flags that set the kind of rows."""
    text = [f"--text {flags['text']}"] if "text" in flags else []
    return text + [f"--{name}" for name in ("tabular", "images") if flags.get(name)]


def _drop_kind(saved: Mapping[str, Any], *, images: bool) -> dict[str, Any]:
    """Return the settings of a file without the kind of rows, which a flag sets."""
    column = ("label",) if images and not saved.get("images") else ()
    return {name: value for name, value in saved.items() if name not in (*_KINDS, *column)}


def _read_config(config: Path) -> dict[str, Any]:
    from calibrant.study.settings.config_file import read_config

    return read_config(config)


def split_candidates(texts: Iterable[str]) -> list[str]:
    """Split at commas, except within the options of a loss.

    A piece that is not the name of a loss, like `momentum=0.9`, belongs to the previous loss.

    Examples
    --------
    >>> split_candidates(["ce,flsd:gammas=[5,3],edges=[0.5],0.5*ce + 0.5*soft_f1", "adafocal"])
    ['ce', 'flsd:gammas=[5,3],edges=[0.5]', '0.5*ce + 0.5*soft_f1', 'adafocal']
    """
    losses: list[str] = []
    for text in texts:
        first = len(losses)
        for piece in _split_at_commas(text):
            if len(losses) > first and _LOSS.match(piece) is None:
                losses[-1] += f",{piece}"
            else:
                losses.append(piece.strip())
    return [loss.strip() for loss in losses]


def _split_at_commas(text: str) -> list[str]:
    pieces, depth = [""], 0
    for sign in text:
        depth += (sign in "[{(") - (sign in "]})")
        if sign == "," and depth <= 0:
            pieces.append("")
        else:
            pieces[-1] += sign
    if len(pieces) > 1 and not pieces[-1].strip():
        pieces.pop()  # trailing comma
    return pieces


def parse_seeds(text: str | None) -> list[int] | None:
    """Parse `0,1,2`.

    Examples
    --------
    >>> parse_seeds("0, 1")
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


def parse_options(texts: Iterable[str], *, flag: str) -> dict[str, Any]:
    """Parse the `key=value` of a repeated flag.

    Examples
    --------
    >>> parse_options(["hidden=[64,32]", "batch_norm=false"], flag="--model-option")
    {'hidden': [64, 32], 'batch_norm': False}
    """
    options: dict[str, Any] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise InputError(f"{flag} {text!r} must read key=value, like {flag} hidden=64.")
        if key in options:
            raise InputError(f"{flag} sets {key!r} twice: set it once.")
        options[key] = parse_value(value)
    return options


def parse_training_options(
    texts: Iterable[str], flags: Mapping[str, Any], variables: Iterable[str]
) -> dict[str, Any]:
    """Merge the options of --training with those that have their own flags.

    Examples
    --------
    >>> parse_training_options(["clip=1"], {"epochs": 5, "patience": "none"}, ())
    {'clip': 1, 'epochs': 5, 'patience': None}
    """
    options = parse_options(texts, flag="--training")
    for key, value in flags.items():
        if value is None or (key in options and key in variables):
            continue
        if key in options:
            flag = f"--{key.replace('_', '-')}"
            raise InputError(f"{flag} and --training {key}=... both set {key!r}: set it once.")
        options[key] = parse_value(value) if isinstance(value, str) else value
    return options


def parse_value(text: str) -> Any:
    """Parse a number, a list in brackets, true, false or none; anything else is text.

    Examples
    --------
    >>> [parse_value(text) for text in ("64", "1e-3", "[8,4]", "true", "None", "adamw")]
    [64, 0.001, [8, 4], True, None, 'adamw']
    """
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.strip().lower() in words:
        return words[text.strip().lower()]
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text


def parse_actions(texts: Iterable[str]) -> dict[str, str]:
    """Parse `CLASS=NAME`; the first = ends the class, because the classes are not known yet.

    Examples
    --------
    >>> parse_actions(["item_defective=refund, priority=high"])
    {'item_defective': 'refund, priority=high'}
    """
    actions: dict[str, str] = {}
    for text in texts:
        class_name, equals, name = (part.strip() for part in text.partition("="))
        if not (class_name and equals and name):
            raise InputError(
                f"--action {text!r} is not an action: write it like 'item_defective=refund'."
            )
        if class_name in actions:
            raise InputError(f"--action names {class_name!r} twice: give each class one action.")
        actions[class_name] = name
    return actions
