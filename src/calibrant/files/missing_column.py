"""The error about a column that a file does not have."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from calibrant.errors import InputError

_MOST, _FIRST, _LAST = 8, 6, 2
"""Columns listed at most, and the first and last ones listed if there are more."""


def missing_column_error(
    file: str | Path, name: str, names: Sequence[str], *, option: str = ""
) -> InputError:
    """Return an error with the nearest name and the columns that exist.

    `option` is the flag that names the column.
    """
    lower = {known.lower(): known for known in reversed(names)}
    near = difflib.get_close_matches(name.lower(), list(lower), n=1, cutoff=0.5)
    suggestion = f" (did you mean '{lower[near[0]]}'?)" if near else ""
    listed = [f"'{known}'" for known in names]
    if len(listed) > _MOST:
        listed = [*listed[:_FIRST], "…", *listed[-_LAST:]]
    flag = f" with {option}" if option else ""
    return InputError(
        f"{file} has no column '{name}'{suggestion}: choose one of its columns{flag}: "
        f"{', '.join(listed)}."
    )
