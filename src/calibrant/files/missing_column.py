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
    suggestion = suggest_column(name, names)
    flag = f" with {option}" if option else ""
    return InputError(
        f"{file} has no column '{name}'{suggestion}: choose one of its columns{flag}: "
        f"{list_columns(names)}."
    )


def lacking_columns_error(
    file: str | Path, lacking: Sequence[str], names: Sequence[str]
) -> InputError:
    """Return an error that names all columns which a bundle reads and a file lacks.

    Examples
    --------
    >>> print(lacking_columns_error("new.csv", ["age", "plan"], ["Age", "city"]))
    new.csv lacks 2 columns, which the bundle reads: 'age' (did you mean 'Age'?), 'plan': give all
    columns of the train rows, under the same names; its columns are: 'Age', 'city'.
    """
    near = [f"'{name}'{suggest_column(name, names, cutoff=0.8)}" for name in lacking[:_MOST]]
    more = f" and {len(lacking) - _MOST} more" if len(lacking) > _MOST else ""
    which = "a column" if len(lacking) == 1 else f"{len(lacking)} columns"
    return InputError(
        f"{file} lacks {which}, which the bundle reads: {', '.join(near)}{more}: give all columns "
        f"of the train rows, under the same names; its columns are: {list_columns(names)}."
    )


def suggest_column(name: str, names: Sequence[str], *, cutoff: float = 0.5) -> str:
    """Return " (did you mean 'x'?)" for the nearest column, or "" if none is near."""
    lower = {known.lower(): known for known in reversed(names)}
    near = difflib.get_close_matches(name.lower(), list(lower), n=1, cutoff=cutoff)
    return f" (did you mean '{lower[near[0]]}'?)" if near else ""


def list_columns(names: Sequence[str]) -> str:
    """Return the first and last column names, quoted."""
    listed = [f"'{known}'" for known in names]
    if len(listed) > _MOST:
        listed = [*listed[:_FIRST], "…", *listed[-_LAST:]]
    return ", ".join(listed)
