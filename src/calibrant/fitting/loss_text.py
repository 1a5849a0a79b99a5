"""Text of a loss: `focal:gamma=3`, `0.5*ce + 0.5*soft_f1`, read into terms and options."""

from __future__ import annotations

import difflib
import inspect
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from calibrant.errors import InputError


def split_terms(text: str) -> list[tuple[float, str]]:
    """Return factor and text of each term of a sum of losses.

    Examples
    --------
    >>> split_terms("0.5*focal:gamma=3 + ce")
    [(0.5, 'focal:gamma=3'), (1.0, 'ce')]
    """
    return [_parse_term(term) for term in _split_text(text, "+")]


_PROPER = {"ce", "brier", "balanced_softmax", "logit_adjustment"}
"""Losses whose minimiser is the true posterior, up to a shift that is removed afterwards."""


def is_proper(text: str) -> bool:
    """Return whether a loss is a proper score, so that a well-fitted model is calibrated.

    Examples
    --------
    >>> is_proper("ce:weight=balanced"), is_proper("ce + 2*brier"), is_proper("focal:gamma=3")
    (True, True, False)
    """
    terms = split_terms(text)
    return all(factor > 0 and term.partition(":")[0] in _PROPER for factor, term in terms)


def parse_options(text: str, whole: str) -> dict[str, Any]:
    """Parse `gamma=3,weight=[1,4]`; values are JSON, otherwise text."""
    options: dict[str, Any] = {}
    for part in _split_text(text, ",") if text.strip() else []:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not value:
            raise InputError(f"{part!r} in {whole!r} must read option=value, like gamma=3.")
        if key in options:
            raise InputError(f"{whole!r} names the option {key!r} twice.")
        options[key] = _parse_value(value)
    return options


def _split_text(text: str, mark: str) -> list[str]:
    """Split at a mark outside brackets, quotes and numbers like 1e+3."""
    parts, depth, quoted = [""], 0, False
    for sign in text:
        quoted ^= sign == '"'
        depth += (sign in "[{(") - (sign in "]})")
        in_number = sign == "+" and re.search(r"\d[eE]$", parts[-1]) is not None
        if sign == mark and depth == 0 and not quoted and not in_number:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _parse_value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return {"True": True, "False": False, "None": None}.get(text, text)


def refuse_unknown(
    options: Mapping[str, Any], function: Callable[..., Any], name: str
) -> list[str]:
    """Return the options that a loss accepts; refuse an unknown one."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # C functions may have no signature
        return list(options)
    accepted = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return [*accepted, *options]
    for option in options:
        if option not in accepted:
            near = difflib.get_close_matches(option, accepted, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise InputError(
                f"the loss {name!r} has no option {option!r}{hint}: it takes "
                f"{', '.join(accepted) or 'none'}."
            )
    return accepted


def refuse_missing(options: Mapping[str, Any], function: Callable[..., Any], name: str) -> None:
    """Refuse options that lack a required one."""
    for option in inspect.signature(function).parameters.values():
        named = option.kind in (option.KEYWORD_ONLY, option.POSITIONAL_OR_KEYWORD)
        if named and option.default is option.empty and option.name not in options:
            raise InputError(
                f"the loss {name!r} needs the option {option.name!r}: write "
                f"'{name}:{option.name}=VALUE' with a number, a word or a list like "
                "[[0,1],[5,0]] for VALUE."
            )


def _parse_term(text: str) -> tuple[float, str]:
    """Parse `0.5*focal:gamma=3`; a star after the colon belongs to the options."""
    text = text.strip()
    if " - " in text:
        raise InputError(f"losses are joined by '+', as in 'ce + -0.5*brier', got {text!r}.")
    head, colon, options = text.partition(":")
    factor, star, name = (part.strip() for part in head.rpartition("*"))
    if not name:
        what = f"no loss follows the star in {text!r}" if star else "the name of a loss is empty"
        raise InputError(f"{what}: write one like 'ce', 'focal:gamma=3' or '2*ce'.")
    number = _parse_factor(factor, text) if star else 1.0
    return number, f"{name}{colon}{options}"


def _parse_factor(factor: str, text: str) -> float:
    try:
        number = float(factor)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(
            f"{factor!r} in {text!r} is not a finite number to scale a loss by: write one before "
            "the star, as in '0.5*ce'."
        )
    return number
