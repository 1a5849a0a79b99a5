"""Functions by name, imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from calibrant.errors import InputError

__all__ = ["function_named"]


def function_named(known: Mapping[str, str], name: str, what: str) -> Callable[..., Any]:
    """Return a function of `reproductions` from a table like {"a": "module:function"}.

    Examples
    --------
    >>> function_named({"ece": "parity:ece_left_closed"}, "ece", "metric").__name__
    'ece_left_closed'
    """
    if name not in known:
        raise InputError(f"there is no {what} {name!r}: choose one of {', '.join(sorted(known))}.")
    module, _, function = known[name].partition(":")
    loaded: Callable[..., Any] = getattr(import_module(f"reproductions.{module}"), function)
    return loaded
