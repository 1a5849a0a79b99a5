"""One input file of a study: the logs or the golden set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.data.row_files import Cells
from calibrant.errors import InputError
from calibrant.files.missing_column import missing_column_error
from calibrant.inputs import IntArray


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
