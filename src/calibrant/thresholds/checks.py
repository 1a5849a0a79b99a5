"""Argument checks shared by the modules of this folder."""

from __future__ import annotations

from numbers import Real
from typing import Any

from calibrant.errors import InputError

EMPIRICAL = "0.95 is usual, and None gives the plain empirical choice"
"""Hint for functions that also accept `confidence=None`."""


def check_confidence(confidence: Any, *, hint: str = "0.95 is usual") -> None:
    """Raise `InputError` unless the confidence is a number strictly between 0 and 1."""
    check_between_0_and_1(confidence, "confidence", hint)


def check_between_0_and_1(value: Any, name: str, hint: str) -> None:
    """Raise `InputError` unless the value is a number strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise InputError(f"{name} must lie strictly between 0 and 1, got {value!r}: {hint}.")
