"""Columns without a name that other programs add: row numbers, and nothing after a last comma."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from calibrant.data.encoders.table_encoder import is_counter
from calibrant.study.rows.source import mask_filled
from calibrant.study.settings.config import StudyConfig

_UNNAMED = re.compile("|Unnamed: [0-9]+")
"""No name, or the one that pandas gives."""


def drop_unnamed_columns(
    table: pa.Table, config: StudyConfig, file: str, notes: list[str]
) -> pa.Table:
    """Return a table without unnamed columns that are empty or number the rows, and note them.

    Such a column tells nothing about a row. One that a setting names is left to the user.
    """
    named = {config.label, config.group, config.time, *config.drop, *config.categories}
    for name in table.column_names:
        if name in named or not _UNNAMED.fullmatch(name):
            continue
        what = _describe_idle(table.column(name))
        if what:
            table = table.drop_columns([name])
            shown = f"The column '{name}'" if name else "The column without a name"
            notes.append(f"{shown} of {Path(file).name} {what}: it was left out.")
    return table


def _describe_idle(column: pa.ChunkedArray) -> str:
    """Return why a column tells nothing, or an empty text."""
    if not np.any(mask_filled(column).to_numpy(zero_copy_only=False)):
        return "has no value"
    if pt.is_integer(column.type) and not column.null_count:
        numbers = column.to_numpy().astype(np.float64)
        return "numbers the rows" if is_counter(numbers) else ""
    return ""
