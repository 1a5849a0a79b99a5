"""One file of a study, the logs or the golden set: its rows as they were read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import IntArray

__all__ = ["Source", "column_of", "filled", "is_text", "left_out"]


@dataclass(frozen=True)
class Source:
    """One file: its rows as they were read.

    Parameters
    ----------
    name : "logs" or "golden"
    file : where it was read from, for errors
    table : all its columns, rows without a label or a text left out; of images their `file`, and
        as `image` a hash by which equal ones are known
    labels : (n,) its labels, as the file has them
    places : (n,) position of each row in the file, from 0
    label : what errors call the labels, like "the label 'reason'"
    images : (n, H, W, C) the images; None where the rows are none
    """

    name: str
    file: str
    table: pa.Table
    labels: pa.ChunkedArray
    places: IntArray
    label: str
    images: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.places)

    @property
    def unit(self) -> str:
        """What one of its rows is called."""
        return "row" if self.images is None else "image"

    def where(self, there: pa.ChunkedArray) -> Source:
        """Return the rows that have all they need."""
        rows = np.flatnonzero(there.to_numpy(zero_copy_only=False))
        return self if len(rows) == len(self) else self.take(rows)

    def take(self, rows: IntArray) -> Source:
        """Return the rows at these positions."""
        at = pa.array(rows)
        return replace(
            self,
            table=self.table.take(at),
            labels=self.labels.take(at),
            places=self.places[rows],
            images=None if self.images is None else self.images[rows],
        )

    def column(self, name: str) -> list[Any]:
        """Return a column as Python values, or say that it is not there."""
        return list(column_of(self.table, name, self.file).to_pylist())

    def shown(self, rows: Iterable[int]) -> list[str]:
        """Return by what a reader finds rows: their numbers from 1, or the files of images."""
        if self.images is None:
            return [f"{self.places[row] + 1:,}" for row in rows]
        return [self.table.column("file")[int(row)].as_py() for row in rows]


def column_of(table: pa.Table, name: str, file: str, *, flag: str = "") -> pa.ChunkedArray:
    """Return a column, or say that it is not there and which are.

    Examples
    --------
    >>> column_of(pa.table({"reason": ["late"]}), "reasons", "tickets.csv", flag="--label")
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: tickets.csv has no column 'reasons' (did you mean 'reason'?): name
    one of its columns with --label: 'reason'.
    """
    if name in table.column_names:
        return table.column(name)
    from difflib import get_close_matches

    near = get_close_matches(name, table.column_names, n=1, cutoff=0.5)
    meant = f" (did you mean '{near[0]}'?)" if near else ""
    listed = ", ".join(f"'{one}'" for one in table.column_names[:12])
    more = " ..." if len(table.column_names) > 12 else ""
    how = f" with {flag}" if flag else ""
    raise InputError(
        f"{file} has no column '{name}'{meant}: name one of its columns{how}: {listed}{more}."
    )


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether a column holds text."""
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which cells hold something, spaces being nothing."""
    there = column.is_valid()
    if is_text(column):
        there = pc.and_(there, pc.not_equal(pc.utf8_trim_whitespace(column), ""))
    return pc.fill_null(there, False)


def left_out(there: Any, what: str, file: str, notes: list[str], *, unit: str = "row") -> None:
    """Say how many rows lack something; refuse a file whose rows all do.

    Examples
    --------
    >>> notes = []
    >>> left_out(pa.array([True, False]), "a label", "tickets.csv", notes)
    >>> notes
    ['Of tickets.csv, 1 row without a label was left out.']
    """
    lacking = len(there) - int(pc.sum(there).as_py() or 0)
    if lacking == len(there):
        raise InputError(f"{file}: none of its {len(there):,} {unit}s has {what}: check the file.")
    if lacking:
        rows, were = (f"1 {unit}", "was") if lacking == 1 else (f"{lacking:,} {unit}s", "were")
        notes.append(f"Of {Path(file).name}, {rows} without {what} {were} left out.")
