"""The rows of a file as a service takes them: texts, rows of a table, or logits."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from calibrant.client.answers import ServedBundle
from calibrant.data.encoders.input_columns import format_names
from calibrant.data.row_columns import as_words
from calibrant.data.row_files import estimate_rows, row_files, scan_rows
from calibrant.errors import InputError
from calibrant.files.source import BatchLocation, is_score
from calibrant.scores.files import count_rows
from calibrant.scores.tables import ScoreTable, TableBatch
from calibrant.workflows.image_rows import holds_images
from calibrant.workflows.scored_rows import notes_of_empty

__all__ = [
    "BATCH",
    "Asked",
    "RemoteRows",
    "ServedRows",
    "ServedScores",
    "cut_by_unit",
    "remote_rows",
]

BATCH = 256
"""Rows of a request: enough that the way there and back costs little."""


@dataclass(frozen=True)
class Asked:
    """Some rows of a file, and what a client sends of them.

    Parameters
    ----------
    table : all columns of the file that are to be written again
    kind : what is sent: "texts", "rows" or "logits"
    values : one for each row
    start : how many rows of the file stand before
    unit : whom the rows are about, or None
    """

    table: pa.Table
    kind: str
    values: Sequence[Any]
    start: int
    unit: str | None = None

    def __len__(self) -> int:
        return len(self.values)

    def part(self, start: int, stop: int) -> Asked:
        """Return some of the rows."""
        table, values = self.table.slice(start, stop - start), self.values[start:stop]
        return Asked(table, self.kind, values, self.start + start, self.unit)

    def of_unit(self, unit: str | None) -> Asked:
        """Return the same rows as those of a unit."""
        return Asked(self.table, self.kind, self.values, self.start, unit)


class ServedScores:
    """Rows of score files, for a service whose bundle has no model.

    A service takes logits. Probabilities are sent as their logarithms, which say the same where no
    probability is exactly 0.

    Parameters
    ----------
    served : the bundle that serves
    data : score files, as `ScoreTable` takes them
    positive : for a lone `prob` or `logit`, the class it is of
    """

    def __init__(self, served: ServedBundle, data: str, *, positive: str | None = None) -> None:
        self._table = ScoreTable(data, positive=positive)
        self._order = self._table.order(served.classes, name=f"the bundle {served.name}")
        self.probs = False

    @property
    def files(self) -> list[Path]:
        """The files that are read."""
        return self._table.files

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a user should be told."""
        sent = ("The probabilities were sent as their logarithms, for a service takes logits.",)
        return (*self._table.notes, *(sent if self.probs else ()))

    def estimate(self) -> int:
        """Return about how many rows there are."""
        return count_rows(self._table.files)

    def batches(self) -> Generator[Asked, None, None]:
        """Yield the rows in their order, in memory that does not grow with their number."""
        seen = 0
        for batch in self._table.batches():
            self._refuse_zeros(batch)
            keep = [name for name in batch.table.column_names if not is_score(name, "prob")]
            table = batch.table.select(keep)
            for start in range(0, table.num_rows, BATCH):
                stop = min(start + BATCH, table.num_rows)  # Arrow believes a longer slice
                logits = batch.logits[start:stop, self._order].astype(np.float64).tolist()
                yield Asked(table.slice(start, stop - start), "logits", logits, seen + start)
            seen += table.num_rows

    def _refuse_zeros(self, batch: TableBatch) -> None:
        """Refuse what only the bundle's calibrator knows how to read."""
        self.probs = batch.probs is not None
        if batch.floored:
            raise InputError(
                f"{self.files[0]} has probabilities of exactly 0 or 1, which have no logits to "
                "send: give logit_ columns, or predict with the folder of the bundle."
            )


class ServedRows:
    """Rows of a file with the columns that the model of a service reads.

    A row without a text counts as one with an empty text, and a note says how many there were.

    Parameters
    ----------
    served : the bundle that serves
    data : a csv, tsv, parquet or jsonl file, a folder or a glob of them
    text : the column with the texts, where it has another name than in training
    """

    def __init__(self, served: ServedBundle, data: str, *, text: str | None = None) -> None:
        if holds_images(data):
            raise InputError(
                f"{data} holds images or arrays, but the service reads {served.input}: name a "
                ".csv, .tsv, .parquet or .jsonl file."
            )
        numbers, texts = (served.columns.get(kind, ()) for kind in ("numbers", "texts"))
        named = text or next(iter(texts), "text")
        self._text = named if served.input == "text" else None
        self._numbers = () if self._text is not None else numbers
        self._texts = texts if self._text is None else (self._text,)
        self._without = 0
        self.probs = False
        self.files = row_files(data)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a user should be told."""
        return notes_of_empty(self._without)

    def estimate(self) -> int:
        """Return about how many rows there are."""
        return estimate_rows(self.files)

    def batches(self) -> Generator[Asked, None, None]:
        """Yield the rows in their order, in memory that does not grow with their number."""
        seen = 0
        for table in scan_rows(
            self.files, numbers=self._numbers, texts=self._texts, batch_rows=BATCH
        ):
            if self._text is not None:
                self._without += table[self._text].null_count
                texts = table[self._text].fill_null("").to_pylist()
                yield Asked(table, "texts", texts, seen)
            else:
                rows = table.select([*self._numbers, *self._texts]).to_pylist()
                yield Asked(table, "rows", rows, seen)
            seen += table.num_rows


RemoteRows = ServedScores | ServedRows


def remote_rows(
    served: ServedBundle, data: str, *, text: str | None = None, positive: str | None = None
) -> RemoteRows:
    """Open a file for a service: by what its model reads or, without a model, as score files."""
    if served.input not in ("text", "table", "logits"):
        raise InputError(
            f"the service reads {served.input}, which this version of calibrant cannot send: "
            "upgrade it."
        )
    if text is not None and served.input != "text":
        read = "score files" if served.input == "logits" else "a table"
        raise InputError(f"--text {text}: the service reads {read}, not texts: leave --text out.")
    if served.input == "logits":
        return ServedScores(served, data, positive=positive)
    if positive is not None:
        raise InputError(
            f"--positive {positive} is for score files, but the service has a model: leave "
            "--positive out."
        )
    return ServedRows(served, data, text=text)


def cut_by_unit(batches: Iterator[Asked], column: str, data: str) -> Generator[Asked, None, None]:
    """Cut batches where the unit changes, for a request is about one unit."""
    for asked in batches:
        names = asked.table.column_names
        if column not in names:
            raise InputError(
                f"{data} has no column '{column}', which --unit names: it has "
                f"{format_names(names)}."
            )
        units = as_words(asked.table[column], BatchLocation(Path(data)), column).to_pylist()
        start = 0
        for unit, same in groupby(units):
            stop = start + sum(1 for _ in same)
            yield asked.part(start, stop).of_unit(unit)
            start = stop
