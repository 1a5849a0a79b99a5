"""One input file of a study: the logs or the golden set, and the columns that it must have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.data.row_files import Cells, read_column_names
from calibrant.errors import InputError
from calibrant.files.missing_column import missing_column_error
from calibrant.inputs import IntArray
from calibrant.study.settings.checks import flag_name

_COLUMNS = {
    "data": ("text", "label", "group", "time"),
    "golden": ("text", "label", "weight"),
}
"""Settings that name one column of a file."""

_FEATURES = ("drop", "categories")
"""Settings that list columns of a table."""


@dataclass(frozen=True)
class StudySource:
    """The rows of one input file.

    Parameters
    ----------
    name : "logs" or "golden"
    file : path of the file, for error messages
    table : all columns, without the rows that lack a label or a text; for images, their `file` and
        a hash of their pixels as `image`
    labels : (n,) labels as in the file
    positions : (n,) position of each row in the file, from 0
    label : how error messages refer to the labels, like "the label 'reason'"
    images : (n, H, W, C) the images; None for texts and tables
    cells : all rows of the file with the cells as they are; None for images
    """

    name: str
    file: str
    table: pa.Table
    labels: pa.ChunkedArray
    positions: IntArray
    label: str
    images: NDArray[np.uint8] | None = None
    cells: Cells | None = None

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def unit(self) -> str:
        """The word for one of its rows: "row" or "image"."""
        return "row" if self.images is None else "image"

    def where(self, mask: pa.ChunkedArray) -> StudySource:
        """Return the rows where `mask` is true."""
        rows = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        return self if len(rows) == len(self) else self.take(rows)

    def take(self, rows: IntArray) -> StudySource:
        """Return the rows at these positions."""
        indices = pa.array(rows)
        return replace(
            self,
            table=self.table.take(indices),
            labels=self.labels.take(indices),
            positions=self.positions[rows],
            images=None if self.images is None else self.images[rows],
        )

    def cell_texts(self, name: str) -> pa.ChunkedArray | None:
        """Return the cells of a column as texts, where the file has no types, as CSV."""
        if self.cells is None or name not in self.cells.untyped:
            return None
        return self.cells.table.column(name).take(pa.array(self.positions))

    def column(self, name: str) -> list[Any]:
        """Return a column as Python values; a missing column raises `InputError`."""
        return list(get_column(self.table, name, self.file).to_pylist())

    def row_names(self, rows: Iterable[int]) -> list[str]:
        """Return row numbers from 1, or the file names of images, for messages."""
        if self.images is None:
            return [f"{self.positions[row] + 1:,}" for row in rows]
        return [self.table.column("file")[int(row)].as_py() for row in rows]


def get_column(table: pa.Table, name: str, file: str, *, flag: str = "") -> pa.ChunkedArray:
    """Return a column; a missing one raises `InputError` with the columns that exist.

    Examples
    --------
    >>> get_column(pa.table({"reason": ["late"]}), "reasons", "tickets.csv", flag="--label")
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: tickets.csv has no column 'reasons' (did you mean 'reason'?):
    choose one of its columns with --label: 'reason'.
    """
    if name in table.column_names:
        return table.column(name)
    raise missing_column_error(file, name, table.column_names, option=flag)


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether a column holds text."""
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def mask_filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a mask of the cells that are neither missing nor blank."""
    mask = column.is_valid()
    if is_text(column):
        mask = pc.and_(mask, pc.not_equal(pc.utf8_trim_whitespace(column), ""))
    return pc.fill_null(mask, False)


def note_left_out(mask: Any, what: str, file: str, notes: list[str], *, unit: str = "row") -> None:
    """Add a note with the number of rows that lack something; all of them raise `InputError`.

    Examples
    --------
    >>> notes = []
    >>> note_left_out(pa.array([True, False]), "a label", "tickets.csv", notes)
    >>> notes
    ['1 row of tickets.csv without a label was left out.']
    """
    lacking = len(mask) - int(pc.sum(mask).as_py() or 0)
    if lacking == len(mask):
        raise InputError(f"{file}: none of its {len(mask):,} {unit}s has {what}: check the file.")
    if lacking:
        rows, were = (f"1 {unit}", "was") if lacking == 1 else (f"{lacking:,} {unit}s", "were")
        notes.append(f"{rows} of {Path(file).name} without {what} {were} left out.")


def check_column_names(settings: Mapping[str, Any]) -> None:
    r"""Raise `InputError` for a column that a file of the study does not have.

    It is called before torch is imported, which takes seconds. Other faults of the settings and the
    files are left to `StudyConfig` and `read_study_rows`.

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
