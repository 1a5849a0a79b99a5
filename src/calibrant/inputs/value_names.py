"""What a value is called where names are needed: as a class, as a group, as a row's id."""

from __future__ import annotations

import re
from typing import Any

from calibrant.inputs.arrays import is_missing, plain

__all__ = ["MISSING", "is_gap", "name_of", "spellings"]

MISSING = "(missing)"
"""The group of rows that name none."""


def spellings(value: Any) -> tuple[str, ...]:
    """Return the names that a value may mean, the likeliest first.

    Examples
    --------
    >>> spellings(" cat "), spellings(3.0), spellings(True)
    (('cat',), ('3', '3.0'), ('True', 'true', '1'))
    """
    if isinstance(value, bool):
        return (str(value), str(value).lower(), str(int(value)))
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    text = str(value).strip()
    # A column of whole numbers that once had a gap is often saved as 3.0.
    return (text.split(".")[0], text) if re.fullmatch(r"-?\d+\.0*", text) else (text,)


def is_gap(value: Any) -> bool:
    """Whether a value, or what a file writes for one, is missing."""
    if isinstance(value, str):
        return value.strip().lower() in ("", "nan")
    return is_missing(value)


def name_of(value: Any) -> str:
    """Return what a value is called; a missing one is called '(missing)'.

    Examples
    --------
    >>> name_of("shop"), name_of(2.0), name_of(None)
    ('shop', '2', '(missing)')
    """
    value = plain(value)
    return MISSING if is_gap(value) else spellings(value)[0]
