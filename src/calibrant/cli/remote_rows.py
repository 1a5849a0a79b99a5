"""Input rows for a service: texts, table rows or logits."""

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
from calibrant.workflows.scored_rows import describe_empty_texts

BATCH = 256  # Rows per request


@dataclass(frozen=True)
class RemoteRequest:
    """Rows of one request."""

    table: pa.Table  # columns to write again
    kind: str  # "texts", "rows" or "logits"
    values: Sequence[Any]  # one value per row
    start: int  # position of the first row in the file
    unit: str | None = None  # unit of the rows, such as a customer, or None

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> RemoteRequest:
        """Return rows `start` to `stop`."""
        table, values = self.table.slice(start, stop - start), self.values[start:stop]
        return RemoteRequest(table, self.kind, values, self.start + start, self.unit)

    def with_unit(self, unit: str | None) -> RemoteRequest:
        """Return the same rows with a unit."""
        return RemoteRequest(self.table, self.kind, self.values, self.start, unit)


class ServedScores:
    """Rows of score files, for a service whose bundle has no model.

    Probabilities are sent as logarithms, which are equivalent unless one is exactly 0.
    """

    def __init__(self, served: ServedBundle, data: str, *, positive: str | None = None) -> None:
        self._table = ScoreTable(data, positive=positive)
        self._order = self._table.order(served.classes, name=f"the bundle {served.name}")
        self.probs = False

    @property
    def files(self) -> list[Path]:
        """The input files."""
        return self._table.files

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes to show the user."""
        sent = ("The probabilities were sent as logarithms, because a service takes logits.",)
        return (*self._table.notes, *(sent if self.probs else ()))

    def estimate(self) -> int:
        """Estimate the number of rows."""
        return count_rows(self._table.files)

    def batches(self) -> Generator[RemoteRequest, None, None]:
        """Yield the rows in order, in constant memory."""
        seen = 0
        for batch in self._table.batches():
            self._refuse_zeros(batch)
            keep = [name for name in batch.table.column_names if not is_score(name, "prob")]
            table = batch.table.select(keep)
            for start in range(0, table.num_rows, BATCH):
                stop = min(start + BATCH, table.num_rows)  # Arrow does not clip a slice
                logits = batch.logits[start:stop, self._order].astype(np.float64).tolist()
                yield RemoteRequest(
                    table.slice(start, stop - start), "logits", logits, seen + start
                )
            seen += table.num_rows

    def _refuse_zeros(self, batch: TableBatch) -> None:
        """Refuse zeros, whose replacement only the bundle's calibrator knows."""
        self.probs = batch.probs is not None
        if batch.floored:
            raise InputError(
                f"{self.files[0]} has probabilities of exactly 0 or 1, which have no finite "
                "logits: provide logit_ columns, or predict with the bundle folder."
            )


class ServedRows:
    """Rows with the columns that the model of a service reads; a missing text counts as empty."""

    def __init__(self, served: ServedBundle, data: str, *, text: str | None = None) -> None:
        if holds_images(data):
            raise InputError(
                f"{data} contains images or arrays, but the service reads {served.input}: name a "
                ".csv, .tsv, .parquet or .jsonl file."
            )
        numbers, texts = (served.columns.get(kind, ()) for kind in ("numbers", "texts"))
        named = text or next(iter(texts), "text")
        self._text = named if served.input == "text" else None
        self._numbers = () if self._text is not None else numbers
        self._texts = texts if self._text is None else (self._text,)
        self._n_empty = 0
        self.probs = False
        self.files = row_files(data)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes to show the user."""
        return describe_empty_texts(self._n_empty)

    def estimate(self) -> int:
        """Estimate the number of rows."""
        return estimate_rows(self.files)

    def batches(self) -> Generator[RemoteRequest, None, None]:
        """Yield the rows in order, in constant memory."""
        seen = 0
        for table in scan_rows(
            self.files, numbers=self._numbers, texts=self._texts, batch_rows=BATCH
        ):
            if self._text is not None:
                self._n_empty += table[self._text].null_count
                texts = table[self._text].fill_null("").to_pylist()
                yield RemoteRequest(table, "texts", texts, seen)
            else:
                rows = table.select([*self._numbers, *self._texts]).to_pylist()
                yield RemoteRequest(table, "rows", rows, seen)
            seen += table.num_rows


RemoteRows = ServedScores | ServedRows


def open_remote_rows(
    served: ServedBundle, data: str, *, text: str | None = None, positive: str | None = None
) -> RemoteRows:
    """Open a file for a service: inputs of its model, or score files if it has none."""
    if served.input not in ("text", "table", "logits"):
        raise InputError(
            f"the service reads {served.input}, which this version of calibrant cannot send: "
            "upgrade it."
        )
    if text is not None and served.input != "text":
        expected = "score files" if served.input == "logits" else "a table"
        raise InputError(
            f"--text {text}: the service reads {expected}, not texts: leave --text out."
        )
    if served.input == "logits":
        return ServedScores(served, data, positive=positive)
    if positive is not None:
        raise InputError(
            f"--positive {positive} is for score files, but the service has a model: leave "
            "--positive out."
        )
    return ServedRows(served, data, text=text)


def split_by_unit(
    batches: Iterator[RemoteRequest], column: str, data: str
) -> Generator[RemoteRequest, None, None]:
    """Split batches where the unit changes, because a request has one unit."""
    for request in batches:
        names = request.table.column_names
        if column not in names:
            raise InputError(
                f"{data} has no column '{column}', which --unit names: it has "
                f"{format_names(names)}."
            )
        units = as_words(request.table[column], BatchLocation(Path(data)), column).to_pylist()
        start = 0
        for unit, same in groupby(units):
            stop = start + sum(1 for _ in same)
            yield request.slice(start, stop).with_unit(unit)
            start = stop
