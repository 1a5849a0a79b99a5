"""Input rows for a bundle: score files, or the columns its own model reads."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from calibrant.bundle import Bundle
from calibrant.data.encoders.reading_error import ReadingError, list_rows
from calibrant.data.row_files import check_bundle_columns, estimate_rows, row_files, scan_rows
from calibrant.errors import InputError
from calibrant.files.source import is_score
from calibrant.inputs import FloatArray
from calibrant.scores.checks import FLOOR
from calibrant.scores.files import count_rows
from calibrant.scores.tables import ScoreTable
from calibrant.workflows.image_rows import ImageFileRows, holds_images
from calibrant.workflows.scored_rows import (
    ScoredBatch,
    describe_empty_texts,
    score_in_order,
)

if TYPE_CHECKING:
    from calibrant.data.row_scorer import RowScorer

_BATCH = 16_384  # Rows scored at a time: enough to group texts of similar length

_DEEP_BATCH = 512  # Batch size of a transformer on a CPU, so that Ctrl-C does not wait for minutes


class ScoreRows:
    """Rows of score files, for a bundle without a model.

    The bundle's probabilities replace those of the file; all other columns are kept.
    """

    def __init__(self, bundle: Bundle, data: str, *, positive: str | None = None) -> None:
        zero_as = FLOOR if bundle.calibration is None else bundle.calibration.zero_as
        self._table = ScoreTable(data, positive=positive, zero_as=zero_as)
        names = [str(name) for name in bundle.classes]
        self._order = self._table.order(names, name=f"the bundle {bundle.path}")

    @property
    def files(self) -> list[Path]:
        """The input files."""
        return self._table.files

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes to show the user."""
        return self._table.notes

    def estimate(self) -> int:
        """Estimate the number of rows."""
        return count_rows(self._table.files)

    def batches(self) -> Generator[ScoredBatch, None, None]:
        """Yield the rows in order, in constant memory."""
        for batch in self._table.batches():
            kind, array = (
                ("logits", batch.logits) if batch.probs is None else ("probs", batch.probs)
            )
            keep = [name for name in batch.table.column_names if not is_score(name, "prob")]
            # Contiguous, so that sums over classes round as when the point was chosen.
            scores = np.ascontiguousarray(array[:, self._order], dtype=np.float64)
            yield ScoredBatch(batch.table.select(keep), {kind: scores})


class ModelRows:
    """Rows with the columns of a bundle's model; a missing text counts as empty."""

    def __init__(self, scorer: RowScorer, data: str, *, text: str | None = None) -> None:
        if text is not None and not scorer.text:
            raise _text_option_error(text, "a table")
        if holds_images(data):
            expected = "texts" if scorer.text else "rows of a table"
            raise InputError(
                f"{data} contains images or arrays, but the bundle reads {expected}: name a "
                ".csv, .tsv, .parquet or .jsonl file."
            )
        self._scorer = scorer
        self._text = (text or scorer.column) if scorer.text else None
        self._n_empty = 0
        self.files = row_files(data)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes to show the user."""
        return describe_empty_texts(self._n_empty)

    def estimate(self) -> int:
        """Estimate the number of rows."""
        return estimate_rows(self.files)

    def batches(self) -> Generator[ScoredBatch, None, None]:
        """Yield the rows in order, in constant memory."""
        deep = self._scorer.is_deep
        with closing(score_in_order(self._tables_with_offset(), self._logits, deep=deep)) as scored:
            for (table, _), logits in scored:
                if self._text is not None:
                    self._n_empty += table[self._text].null_count
                yield ScoredBatch(table, {"logits": logits}, self._inputs(table))

    def _inputs(self, table: pa.Table) -> Any:
        """Return what the model reads of a batch."""
        if self._text is not None:
            return table[self._text].fill_null("")
        return self._scorer.columns.select_from(table)

    def _tables_with_offset(self) -> Iterator[tuple[pa.Table, int]]:
        """Yield batches with the number of rows before each."""
        seen = 0
        for table in self._tables():
            yield table, seen
            seen += table.num_rows

    def _tables(self) -> Iterator[pa.Table]:
        slow = self._scorer.is_deep and self._scorer.device_type == "cpu"
        size = min(_BATCH, _DEEP_BATCH) if slow else _BATCH
        if self._text is not None:
            return scan_rows(self.files, texts=[self._text], batch_rows=size)
        columns = self._scorer.columns
        check_bundle_columns(self.files, columns.names)
        return scan_rows(
            self.files,
            numbers=columns.numbers,
            texts=columns.texts,
            unchanged=columns.formatted,
            batch_rows=size,
        )

    def _logits(self, batch: tuple[pa.Table, int]) -> FloatArray:
        table, seen = batch
        if self._text is not None:
            return self._scorer.predict_logits(self._inputs(table))
        try:
            return self._scorer.predict_logits(self._inputs(table))
        except ReadingError as error:

            def name_rows(rows: Sequence[int], n: int) -> str:
                return list_rows("data row", [f"{seen + row + 1:,}" for row in rows], n)

            subject = f"{self.files[0]}: column {error.column!r}"
            raise InputError(error.describe(subject, name=name_rows, command=True)) from None
        except InputError as error:  # its row numbers start at the batch
            rows = f"data rows {seen + 1:,} to {seen + table.num_rows:,}"
            raise InputError(f"{rows} of {self.files[0]}: {error}") from None


BundleRows = ScoreRows | ModelRows | ImageFileRows


def _text_option_error(text: str, expected: str) -> InputError:
    return InputError(
        f"--text {text}: the bundle's model reads {expected}, not texts: leave --text out."
    )


def open_rows(
    bundle: Bundle, data: str, *, text: str | None = None, positive: str | None = None
) -> BundleRows:
    """Open a file for a bundle: inputs of its model, or score files if it has none."""
    if bundle.scorer is not None:
        if positive is not None:
            raise InputError(
                f"--positive {positive} is for score files, but the bundle {bundle.path} has a "
                "model: leave --positive out."
            )
        if bundle.scorer.kind != "image":
            return ModelRows(bundle.scorer, data, text=text)
        if text is not None:
            raise _text_option_error(text, "images")
        return ImageFileRows(bundle.scorer, data)
    if text is not None:
        raise InputError(
            f"--text {text} is for texts, but the bundle {bundle.path} has no model and reads "
            "score files: leave --text out."
        )
    return ScoreRows(bundle, data, positive=positive)
