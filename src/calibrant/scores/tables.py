"""Score files with all columns, for rewriting with new scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.files.source import BatchLocation, ColumnOptions, Source
from calibrant.inputs import FloatArray
from calibrant.scores.checks import FLOOR, check_scores, clip_logits, scores_to_logits
from calibrant.scores.columns import Layout, check_same_layout, layout_of
from calibrant.scores.files import Paths, open_source, score_files
from calibrant.scores.read import are_boolean, class_order

_ENTRIES = 1 << 21  # Scores in memory at a time, over all classes


@dataclass(frozen=True)
class TableBatch:
    """A batch of rows: logits (n, K) and all columns of the file.

    `probs` are the probabilities (n, K) of the file, or None if it has logits.
    """

    logits: NDArray[np.floating[Any]]
    table: pa.Table
    floored: int = 0
    probs: NDArray[np.floating[Any]] | None = None


class ScoreTable:
    r"""Score files whose scores are replaced while all other columns are kept.

    Files are those of `read_scores`, with or without labels. `positive` is the class of a single
    `prob` or `logit` column (default 1 or true); smaller probabilities than `zero_as` are replaced
    by it before conversion to logits.
    """

    def __init__(
        self,
        path: Paths,
        *,
        positive: str | None = None,
        label: str = "label",
        weight: str = "weight",
        zero_as: float = FLOOR,
    ) -> None:
        self._zero_as = zero_as
        self.files = score_files(path)
        self._ask = ColumnOptions(label=label, weight=weight, positive=positive, whole=True)
        self._first = open_source(self.files[0], self._ask)
        self._layout = layout_of(self._first, self._ask)
        self._names = tuple(self._first.names)
        self.positive = self._named_positive()

    @property
    def lone(self) -> bool:
        """Whether a single column holds the scores of two classes."""
        return self._layout.lone

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user."""
        skipped = self._first.left_out
        if not skipped:
            return ()
        names = ", ".join(f"'{name}'" for name in skipped)
        return (f"Ignored, because it does not have one value per row: {names}.",)

    def order(self, classes: Sequence[str], *, name: str) -> list[int]:
        """Return the column of `TableBatch.logits` for each of `classes`.

        `name` is the owner of these classes, for messages.
        """
        file = str(self.files[0])
        pair = self._first.pair
        if not self.lone:
            return class_order(self._layout.classes, classes, files=(file, name))
        if pair is not None:
            return class_order(pair, classes, files=(file, name))
        if len(classes) != 2:
            raise InputError(
                f"{file} has a single '{self._layout.values[0]}' for two classes, but {name}"
                f" has {len(classes)} classes: use the same classes for both."
            )
        return [0, 1] if self._positive_of(classes, name) == 1 else [1, 0]

    def batches(self) -> Iterator[TableBatch]:
        """Yield the rows in order, in constant memory."""
        schema = None
        for source in self._sources():
            rows_before = 0
            rows = max(1024, min(1 << 18, _ENTRIES // len(self._layout.values)))
            words = [n for n in self._names if n not in self._layout.numbers]
            for batch in source.batches(self._layout.numbers, words, rows):
                if batch.num_rows == 0:
                    continue
                table = pa.Table.from_batches([batch]).select(self._names)
                schema = schema or table.schema
                place = BatchLocation(source.file, rows_before, source.display_names)
                scores = check_scores(batch, self._layout, place)
                logits, floored = self._logits(scores)
                whole = _cast_to_schema(schema, table, source.file)
                yield TableBatch(logits, whole, floored, self._probs(scores))
                rows_before += batch.num_rows
        if schema is None:
            raise InputError(
                f"{self.files[0]} has column names but no rows: at least one row is needed."
            )

    def with_probs(self, batch: TableBatch, probs: FloatArray) -> pa.Table:
        """Return the columns of a batch, with the scores replaced by probabilities (n, K)."""
        layout = self._layout
        arrays: dict[str, pa.Array] = {}
        for name, column in zip(batch.table.column_names, batch.table.columns, strict=True):
            if name not in layout.values:
                arrays[name] = column
            elif not layout.lone:
                k = layout.values.index(name)
                arrays[f"prob_{layout.classes[k]}"] = pa.array(probs[:, k])
            elif self._first.pair is None or are_boolean(self._first.pair):
                arrays["prob"] = pa.array(probs[:, 1])
            else:  # only the column names can carry the class names of the archive
                for k, class_name in enumerate(self._first.pair):
                    arrays[f"prob_{class_name}"] = pa.array(probs[:, k])
        return pa.table(arrays)

    def _named_positive(self) -> str | None:
        """Return the class of a single score column, if the user or the file names it."""
        pair, positive = self._first.pair, self._ask.positive
        if pair is not None and positive not in (None, pair[1]):
            raise InputError(
                f"--positive {positive} contradicts {self.files[0]}, whose scores are of "
                f"'{pair[1]}': omit --positive."
            )
        return positive if pair is None else pair[1]

    def _positive_of(self, classes: Sequence[str], name: str) -> int:
        """Return the position of the class of a single score column."""
        if self.positive is not None:
            if self.positive in classes:
                return list(classes).index(self.positive)
            raise InputError(
                f"--positive {self.positive} is not a class of {name}: choose '{classes[1]}' or "
                f"'{classes[0]}', the class of '{self._layout.values[0]}'."
            )
        if are_boolean(classes):
            return 1 if classes[1].lower() in ("1", "true") else 0
        raise InputError(
            f"{self.files[0]} has a single '{self._layout.values[0]}', but {name} has the classes "
            f"'{classes[0]}' and '{classes[1]}': name the class it is the score of with "
            f"--positive {quote(classes[1])}."
        )

    def _sources(self) -> Iterator[Source]:
        yield self._first
        for file in self.files[1:]:
            source = open_source(file, self._ask)
            check_same_layout(self._layout, self.files[0], layout_of(source, self._ask), file)
            unmatched = sorted(set(source.names) ^ set(self._names))
            if unmatched:
                where = file if unmatched[0] in source.names else self.files[0]
                raise InputError(
                    f"{file} has different columns than {self.files[0]}: '{unmatched[0]}' is only "
                    f"in {where}: give all files the same columns."
                )
            if source.pair != self._first.pair:
                raise InputError(
                    f"{file} has different classes than {self.files[0]}: use the same in all files."
                )
            yield source

    def _probs(self, scores: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]] | None:
        if self._layout.kind != "prob":
            return None
        return np.column_stack([1.0 - scores, scores]) if self._layout.lone else scores

    def _logits(self, scores: NDArray[np.floating[Any]]) -> tuple[NDArray[np.floating[Any]], int]:
        layout: Layout = self._layout
        logits, floored = scores_to_logits(scores, layout)
        if layout.kind == "prob":
            logits = clip_logits(logits, self._zero_as)
        if layout.lone:
            logits = np.column_stack([-0.5 * logits, 0.5 * logits])
        return logits, floored


def _cast_to_schema(schema: pa.Schema, table: pa.Table, file: Path) -> pa.Table:
    """Cast the columns to the types of the first batch."""
    if table.schema.equals(schema):
        return table
    columns = []
    for field in schema:
        try:
            columns.append(table.column(field.name).cast(field.type))
        except pa.ArrowException:
            raise InputError(
                f"{file}: column '{field.name}' has type {table.schema.field(field.name).type}, "
                f"but {field.type} in earlier files: save it with the same type."
            ) from None
    return pa.Table.from_arrays(columns, schema=schema)
