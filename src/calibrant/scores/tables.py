"""Score files with all their columns, labelled or not, to be written again with new scores."""

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
from calibrant.files.source import Ask, Place, Source
from calibrant.inputs import FloatArray
from calibrant.scores.checks import FLOOR, as_finite_logits, checked_scores, raised
from calibrant.scores.classes import are_truths, class_order
from calibrant.scores.columns import Layout, layout_of, same_layout
from calibrant.scores.files import Paths, open_source, score_files

__all__ = ["ScoreTable", "TableBatch"]

_ENTRIES = 1 << 21
"""Scores held at a time, of all classes together."""


@dataclass(frozen=True)
class TableBatch:
    """Some rows: their logits (n, K), one column for each class, and all columns of the file.

    `probs` are the file's own probabilities (n, K), where it holds probabilities.
    """

    logits: NDArray[np.floating[Any]]
    table: pa.Table
    floored: int = 0
    probs: NDArray[np.floating[Any]] | None = None


class ScoreTable:
    r"""Score files whose scores are to be replaced and whose other columns are to be kept.

    Parameters
    ----------
    path : score files, as `read_scores` takes them; labels need not be there
    positive : for a lone `prob` or `logit`, the class it is of; by default 1 or true
    label, weight : names of those columns, where there are any
    zero_as : no probability counts as smaller where its logit is needed

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "scores.csv"
    >>> _ = file.write_text("id,logit_cat,logit_dog\n007,0.5,-0.5\n")
    >>> table = ScoreTable(file)
    >>> (batch,) = table.batches()
    >>> batch.logits
    array([[ 0.5, -0.5]])
    >>> table.with_probs(batch, np.array([[0.75, 0.25]])).to_pylist()
    [{'id': '007', 'prob_cat': 0.75, 'prob_dog': 0.25}]
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
        self._ask = Ask(label=label, weight=weight, positive=positive, whole=True)
        self._first = open_source(self.files[0], self._ask)
        self._layout = layout_of(self._first, self._ask)
        self._names = tuple(self._first.names)
        self.positive = self._named_positive()

    @property
    def lone(self) -> bool:
        """Whether one column holds the scores of two classes."""
        return self._layout.lone

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a user should be told."""
        gone = self._first.left_out
        if not gone:
            return ()
        listed = ", ".join(f"'{name}'" for name in gone)
        return (f"Left out, for it does not hold one value for each row: {listed}.",)

    def order(self, classes: Sequence[str], *, name: str) -> list[int]:
        """Return where each of `classes` stands among the columns of `TableBatch.logits`.

        `name` is what errors call the thing that is about these classes.
        """
        file = str(self.files[0])
        pair = self._first.pair
        if not self.lone:
            return class_order(self._layout.classes, classes, files=(file, name))
        if pair is not None:
            return class_order(pair, classes, files=(file, name))
        if len(classes) != 2:
            raise InputError(
                f"{file} has a lone '{self._layout.values[0]}', which knows two classes, but {name}"
                f" is about {len(classes)}: both must be about the same classes."
            )
        return [0, 1] if self._positive_of(classes, name) == 1 else [1, 0]

    def batches(self) -> Iterator[TableBatch]:
        """Yield the rows in their order; the memory needed does not grow with their number."""
        schema = None
        for source in self._sources():
            seen = 0
            rows = max(1024, min(1 << 18, _ENTRIES // len(self._layout.values)))
            words = [n for n in self._names if n not in self._layout.numbers]
            for batch in source.batches(self._layout.numbers, words, rows):
                if batch.num_rows == 0:
                    continue
                table = pa.Table.from_batches([batch]).select(self._names)
                schema = schema or table.schema
                place = Place(source.file, seen, source.called)
                scores = checked_scores(batch, self._layout, place)
                logits, floored = self._logits(scores)
                whole = _as(schema, table, source.file)
                yield TableBatch(logits, whole, floored, self._probs(scores))
                seen += batch.num_rows
        if schema is None:
            raise InputError(
                f"{self.files[0]} has column names but no rows: at least one row is needed."
            )

    def with_probs(self, batch: TableBatch, probs: FloatArray) -> pa.Table:
        """Return the batch's columns in their order, with probabilities (n, K) for the scores."""
        layout = self._layout
        arrays: dict[str, pa.Array] = {}
        for name, column in zip(batch.table.column_names, batch.table.columns, strict=True):
            if name not in layout.values:
                arrays[name] = column
            elif not layout.lone:
                k = layout.values.index(name)
                arrays[f"prob_{layout.classes[k]}"] = pa.array(probs[:, k])
            elif self._first.pair is None or are_truths(self._first.pair):
                arrays["prob"] = pa.array(probs[:, 1])
            else:  # a table has no other place for the names that the archive gave
                for k, named in enumerate(self._first.pair):
                    arrays[f"prob_{named}"] = pa.array(probs[:, k])
        return pa.table(arrays)

    def _named_positive(self) -> str | None:
        """Return the class that a lone column is of, where the user or the file names it."""
        pair, positive = self._first.pair, self._ask.positive
        if pair is not None and positive not in (None, pair[1]):
            raise InputError(
                f"--positive {positive} contradicts {self.files[0]}, whose lone scores are of "
                f"'{pair[1]}': leave --positive out."
            )
        return positive if pair is None else pair[1]

    def _positive_of(self, classes: Sequence[str], name: str) -> int:
        """Return which of two classes the lone column is of."""
        if self.positive is not None:
            if self.positive in classes:
                return list(classes).index(self.positive)
            raise InputError(
                f"--positive {self.positive} is not a class of {name}: choose '{classes[1]}' or "
                f"'{classes[0]}', whichever '{self._layout.values[0]}' is the score of."
            )
        if are_truths(classes):
            return 1 if classes[1].lower() in ("1", "true") else 0
        raise InputError(
            f"{self.files[0]} has a lone '{self._layout.values[0]}', but {name} is about "
            f"'{classes[0]}' and '{classes[1]}': say which of them it is the score of with "
            f"--positive {quote(classes[1])}."
        )

    def _sources(self) -> Iterator[Source]:
        yield self._first
        for file in self.files[1:]:
            source = open_source(file, self._ask)
            same_layout(self._layout, self.files[0], layout_of(source, self._ask), file)
            odd = sorted(set(source.names) ^ set(self._names))
            if odd:
                where = file if odd[0] in source.names else self.files[0]
                raise InputError(
                    f"{file} has other columns than {self.files[0]}: '{odd[0]}' is only in {where}:"
                    " all files must have the same columns."
                )
            if source.pair != self._first.pair:
                raise InputError(
                    f"{file} has other classes than {self.files[0]}: all files must have the same."
                )
            yield source

    def _probs(self, scores: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]] | None:
        if self._layout.kind != "prob":
            return None
        return np.column_stack([1.0 - scores, scores]) if self._layout.lone else scores

    def _logits(self, scores: NDArray[np.floating[Any]]) -> tuple[NDArray[np.floating[Any]], int]:
        layout: Layout = self._layout
        logits, floored = as_finite_logits(scores, layout)
        if layout.kind == "prob":
            logits = raised(logits, self._zero_as)
        if layout.lone:
            logits = np.column_stack([-0.5 * logits, 0.5 * logits])
        return logits, floored


def _as(schema: pa.Schema, table: pa.Table, file: Path) -> pa.Table:
    """Give the columns the types that they had in the first rows."""
    if table.schema.equals(schema):
        return table
    columns = []
    for field in schema:
        try:
            columns.append(table.column(field.name).cast(field.type))
        except pa.ArrowException:
            raise InputError(
                f"{file}: column '{field.name}' has type {table.schema.field(field.name).type}, "
                f"but {field.type} in the files before: save it with the same type."
            ) from None
    return pa.Table.from_arrays(columns, schema=schema)
