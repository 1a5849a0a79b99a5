"""Names of values that serve as a class, a group or a row id."""

from __future__ import annotations

import re
from typing import Any

from calibrant.inputs.arrays import is_missing, to_python

MISSING = "(missing)"  # Group of the rows without a group


def spellings(value: Any) -> tuple[str, ...]:
    """Return the class names that a value may stand for, the likeliest first."""
    if isinstance(value, bool):
        return (str(value), str(value).lower(), str(int(value)))
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    text = str(value).strip()
    # A column of integers with a missing value is often saved as floats.
    return (text.split(".")[0], text) if re.fullmatch(r"-?\d+\.0*", text) else (text,)


def is_gap(value: Any) -> bool:
    """Return whether a value is missing, or is text that a file writes for a missing one."""
    if isinstance(value, str):
        return value.strip().lower() in ("", "nan")
    return is_missing(value)


def name_of(value: Any) -> str:
    """Return the name of a value; '(missing)' for a missing one."""
    value = to_python(value)
    return MISSING if is_gap(value) else spellings(value)[0]
