"""What was said about the rows of a file, written as new columns and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.bundle.decisions import WORDS
from calibrant.bundle.predict_columns import predict_columns
from calibrant.cli import interruption
from calibrant.cli.progress import progress
from calibrant.errors import InputError
from calibrant.files.write_table import write_tables
from calibrant.inputs import FloatArray

__all__ = ["FileRows", "Predicted", "Said", "Teller", "refuse_taken", "tell_file"]


@dataclass(frozen=True)
class Predicted:
    """What became of the rows.

    Parameters
    ----------
    rows : how many there were
    predicted : how many rows each class is the most probable one of
    decisions : how many rows got each decision; None where the bundle has no operating point
    out_of_scope : how many rows the bundle's rule flags; None where it has no rule
    notes : sentences that a user should be told
    """

    rows: int
    predicted: Mapping[str, int]
    decisions: Mapping[str, int] | None
    out_of_scope: int | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Said:
    """What was said about some rows.

    Parameters
    ----------
    table : all columns of the file that are to be written again
    probabilities : (n, K)
    decision, acted_as, action : of each row; None where there is no operating point
    out_of_scope : (n,) whether a row is; None where no rule tells
    ids : the name that each prediction has in a store; None where nothing is stored
    """

    table: pa.Table
    probabilities: FloatArray
    decision: NDArray[Any] | None = None
    acted_as: Sequence[Any] | None = None
    action: Sequence[str | None] | None = None
    out_of_scope: NDArray[np.bool_] | None = None
    ids: Sequence[str] | None = None


class FileRows(Protocol):
    """The rows of files, whoever says something about them."""

    @property
    def files(self) -> list[Path]:
        """The files that are read."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a user should be told."""

    def estimate(self) -> int | None:
        """Return about how many rows there are."""


class Teller:
    """Makes the new columns of batches of rows, and counts.

    Parameters
    ----------
    classes : names of the classes in the order of the probabilities
    decides : whether there is an operating point
    scoped : whether there is a rule that flags rows
    stored : whether predictions have names in a store
    """

    def __init__(
        self, classes: Sequence[Any], *, decides: bool, scoped: bool, stored: bool = False
    ) -> None:
        self._names = [str(name) for name in classes]
        self._classes = _column(classes)
        self._decides, self._scoped, self._stored = decides, scoped, stored
        self._rows = self._outside = 0
        self._predicted = np.zeros(len(classes), dtype=np.int64)
        self._decisions: Counter[str] = Counter()

    @property
    def names(self) -> list[str]:
        """Names of the new columns."""
        return predict_columns(
            self._names, decides=self._decides, scoped=self._scoped, stored=self._stored
        )

    def added(self, said: Said) -> pa.Table:
        """Return a batch with its new columns."""
        codes = said.probabilities.argmax(axis=1)
        self._rows += len(codes)
        self._predicted += np.bincount(codes, minlength=len(self._names))
        probs = np.ascontiguousarray(said.probabilities.T)
        new = [self._classes.take(pa.array(codes)), *map(pa.array, probs)]
        if said.decision is not None:
            words = {word: int(np.count_nonzero(said.decision == word)) for word in WORDS}
            self._decisions.update(words)
            new += self._decision_columns(said)
        if said.out_of_scope is not None:
            self._outside += int(np.count_nonzero(said.out_of_scope))
            new.append(pa.array(said.out_of_scope))
        if said.ids is not None:
            new.append(pa.array(said.ids, pa.string()))
        table = said.table
        for name, column in zip(self.names, new, strict=True):
            table = table.append_column(name, column)
        return table

    def told(self, notes: Sequence[str]) -> Predicted:
        """Return the counts."""
        return Predicted(
            self._rows,
            dict(zip(self._names, self._predicted.tolist(), strict=True)),
            dict(self._decisions) if self._decides else None,
            self._outside if self._scoped else None,
            tuple(notes),
        )

    def _decision_columns(self, said: Said) -> list[pa.Array]:
        acted = list(said.acted_as or [])
        if pa.types.is_string(self._classes.type):
            acted = [None if name is None else str(name) for name in acted]
        return [
            pa.array(said.decision),
            pa.array(acted, self._classes.type),
            pa.array(list(said.action or []), pa.string()),
        ]


def tell_file(
    said: Generator[Said, None, None], teller: Teller, rows: FileRows, out: Path | None
) -> Predicted:
    """Write rows with what was said about them to `out`, or only count them."""
    with progress("predicting", rows.estimate()) as advance:

        def told() -> Iterator[pa.Table]:
            with closing(said):  # ends its threads
                for one in said:
                    interruption.check()
                    yield teller.added(one)
                    advance(one.table.num_rows)

        if out is not None:
            write_tables(out, told(), name="-o")
        else:
            for _ in told():
                pass
    return teller.told(rows.notes)


def refuse_taken(there: Sequence[str], new: Sequence[str], file: Path) -> None:
    """Refuse a file that has a column where a new one would go."""
    for name in new:
        if name in there:
            raise InputError(
                f"{file} has a column '{name}' already, where the predictions would go: rename or "
                "drop it."
            )


def _column(classes: Sequence[Any]) -> pa.Array:
    """Return the classes as an Arrow column: of their own type, or as text where they mix types."""
    same = len({type(name) for name in classes}) == 1
    return pa.array(list(classes) if same else [str(name) for name in classes])
