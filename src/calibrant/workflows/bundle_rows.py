"""The rows of a file as a bundle takes them: scores of any model, or what its own model reads."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from calibrant.bundle import Bundle
from calibrant.data.row_files import estimate_rows, row_files, scan_rows
from calibrant.errors import InputError
from calibrant.files.source import is_score
from calibrant.inputs import FloatArray
from calibrant.scores.checks import FLOOR
from calibrant.scores.files import count_rows
from calibrant.scores.tables import ScoreTable
from calibrant.workflows.image_rows import ImageFileRows, holds_images
from calibrant.workflows.scored_rows import Given, is_deep, notes_of_empty, scored_in_order

if TYPE_CHECKING:
    from calibrant.models.scorer import Scorer

__all__ = ["BundleRows", "ModelRows", "ScoreRows", "rows_for"]

_BATCH = 16_384
"""Rows scored at a time: enough that texts of like length find each other."""

_DEEP_BATCH = 512
"""Of a transformer on a CPU, which needs minutes for more: who interrupts it waits for these."""


class ScoreRows:
    """Rows of score files, for a bundle without a model.

    Probabilities in the file give way to those of the bundle, which have the same names; all other
    columns stay.

    Parameters
    ----------
    bundle : the bundle
    data : score files, as `ScoreTable` takes them
    positive : for a lone `prob` or `logit`, the class it is of
    """

    def __init__(self, bundle: Bundle, data: str, *, positive: str | None = None) -> None:
        zero_as = FLOOR if bundle.calibration is None else bundle.calibration.zero_as
        self._table = ScoreTable(data, positive=positive, zero_as=zero_as)
        names = [str(name) for name in bundle.classes]
        self._order = self._table.order(names, name=f"the bundle {bundle.path}")

    @property
    def files(self) -> list[Path]:
        """The files that are read."""
        return self._table.files

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a user should be told."""
        return self._table.notes

    def estimate(self) -> int:
        """Return about how many rows there are."""
        return count_rows(self._table.files)

    def batches(self) -> Generator[Given, None, None]:
        """Yield the rows in their order, in memory that does not grow with their number."""
        for batch in self._table.batches():
            kind, array = (
                ("logits", batch.logits) if batch.probs is None else ("probs", batch.probs)
            )
            keep = [name for name in batch.table.column_names if not is_score(name, "prob")]
            # In one block of memory, so that sums over classes round as when a point was chosen.
            scores = np.ascontiguousarray(array[:, self._order], dtype=np.float64)
            yield Given(batch.table.select(keep), {kind: scores})


class ModelRows:
    """Rows of a file with the columns that a bundle's model was trained on.

    A row without a text counts as one with an empty text, and a note says how many there were.

    Parameters
    ----------
    scorer : the bundle's model
    data : a csv, tsv, parquet or jsonl file, a folder or a glob of them
    text : the column with the texts, where it has another name than in training
    """

    def __init__(self, scorer: Scorer, data: str, *, text: str | None = None) -> None:
        if text is not None and not scorer.text:
            raise _no_texts(text, "a table")
        if holds_images(data):
            read = "texts" if scorer.text else "rows of a table"
            raise InputError(
                f"{data} holds images or arrays, but the bundle reads {read}: name a .csv, .tsv, "
                ".parquet or .jsonl file."
            )
        self._scorer = scorer
        self._text = (text or scorer.column) if scorer.text else None
        self._without = 0
        self.files = row_files(data)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a user should be told."""
        return notes_of_empty(self._without)

    def estimate(self) -> int:
        """Return about how many rows there are."""
        return estimate_rows(self.files)

    def batches(self) -> Generator[Given, None, None]:
        """Yield the rows in their order, in memory that does not grow with their number."""
        deep = is_deep(self._scorer)
        with closing(scored_in_order(self._counted(), self._logits, deep=deep)) as scored:
            for (table, _), logits in scored:
                if self._text is not None:
                    self._without += table[self._text].null_count
                yield Given(table, {"logits": logits})

    def _counted(self) -> Iterator[tuple[pa.Table, int]]:
        """Yield batches with the number of rows before them."""
        seen = 0
        for table in self._tables():
            yield table, seen
            seen += table.num_rows

    def _tables(self) -> Iterator[pa.Table]:
        slow = is_deep(self._scorer) and self._scorer.device.type == "cpu"
        size = min(_BATCH, _DEEP_BATCH) if slow else _BATCH
        if self._text is not None:
            return scan_rows(self.files, texts=[self._text], batch_rows=size)
        named = self._scorer.columns
        return scan_rows(self.files, numbers=named.numbers, texts=named.texts, batch_rows=size)

    def _logits(self, batch: tuple[pa.Table, int]) -> FloatArray:
        table, seen = batch
        if self._text is not None:
            return self._scorer.predict_logits(table[self._text].fill_null(""))
        try:
            return self._scorer.predict_logits(self._scorer.columns.select_from(table))
        except InputError as error:  # it counts the rows of the batch from 0
            rows = f"data rows {seen + 1:,} to {seen + table.num_rows:,}"
            raise InputError(f"{rows} of {self.files[0]}: {error}") from None


BundleRows = ScoreRows | ModelRows | ImageFileRows


def _no_texts(text: str, read: str) -> InputError:
    return InputError(
        f"--text {text}: the bundle's model reads {read}, not texts: leave --text out."
    )


def rows_for(
    bundle: Bundle, data: str, *, text: str | None = None, positive: str | None = None
) -> BundleRows:
    """Open a file for a bundle: by what its model reads or, without a model, as score files."""
    if bundle.scorer is not None:
        if positive is not None:
            raise InputError(
                f"--positive {positive} is for score files, but the bundle {bundle.path} has a "
                "model: leave --positive out."
            )
        if bundle.scorer.kind != "image":
            return ModelRows(bundle.scorer, data, text=text)
        if text is not None:
            raise _no_texts(text, "images")
        return ImageFileRows(bundle.scorer, data)
    if text is not None:
        raise InputError(
            f"--text {text} is for texts, but the bundle {bundle.path} has no model and reads "
            "score files: leave --text out."
        )
    return ScoreRows(bundle, data, positive=positive)
