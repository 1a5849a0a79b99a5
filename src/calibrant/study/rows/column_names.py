"""Check the column names of a study before torch is imported, which takes seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.data.row_files import read_column_names
from calibrant.errors import InputError
from calibrant.files.missing_column import missing_column_error
from calibrant.study.settings.checks import flag_name

_COLUMNS = {
    "data": ("text", "label", "group", "time"),
    "golden": ("text", "label", "weight"),
}
"""Settings that name one column of a file."""

_FEATURES = ("drop", "categories")
"""Settings that list columns of a table."""


def check_column_names(settings: Mapping[str, Any]) -> None:
    r"""Raise `InputError` for a column that a file of the study does not have.

    Other faults of the settings and the files are left to `StudyConfig` and `read_study_rows`.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tickets.csv"
    >>> _ = file.write_text("message,reason\nit broke,defect\n")
    >>> check_column_names({"data": str(file), "text": "mesage", "label": "reason"})
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: ... has no column 'mesage' (did you mean 'message'?): choose ...
    """
    if settings.get("images"):
        return
    for role in _COLUMNS:
        file = str(settings.get(role, ""))
        names = _read_names(file)
        for setting, column in _named_columns(settings, role) if names else ():
            if column not in names:
                raise missing_column_error(file, column, names, option=flag_name(setting))


def _read_names(file: str) -> list[str]:
    """Return the column names of a file, or an empty list if it cannot be read."""
    try:
        return read_column_names(file) if Path(file).is_file() or Path(file).is_dir() else []
    except (InputError, OSError):
        return []


def _named_columns(settings: Mapping[str, Any], role: str) -> Iterator[tuple[str, str]]:
    """Yield the settings that name columns of a file, each with its column."""
    for setting in _COLUMNS[role]:
        if isinstance(settings.get(setting), str):
            yield setting, settings[setting]
    if settings.get("text") is None:
        for setting in _FEATURES:
            columns = settings.get(setting, ())
            if isinstance(columns, list | tuple):
                yield from ((setting, c.strip()) for c in columns if isinstance(c, str))
