"""What a bundle says about the rows of a file, batch by batch, in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.bundle import Bundle, Decisions
from calibrant.bundle.scope import flagged
from calibrant.bundle.scores import GivenScores
from calibrant.cli import interruption
from calibrant.cli.bundle_rows import BundleRows
from calibrant.cli.given_rows import Given
from calibrant.cli.progress import progress
from calibrant.data.table_files import write_tables
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

__all__ = ["Predicted", "predict_file"]

Columns = dict[str, pa.Array]


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


def predict_file(
    bundle: Bundle, rows: BundleRows, out: Path | None, *, point: int | None = None
) -> Predicted:
    """Score every row and write the rows with what the bundle says to `out`, or only count them.

    Parameters
    ----------
    bundle : the bundle
    rows : the rows of the file, as the bundle takes them
    out : where to write; None to count only
    point : position of the one operating point that decides; by default the first of each class
    """
    teller = _Teller(bundle, point)
    with progress("predicting", rows.estimate()) as advance:

        def told() -> Iterator[pa.Table]:
            with closing(rows.batches()) as batches:  # ends its threads, whatever happens here
                for given in batches:
                    interruption.check()
                    _refuse_taken(given.table.column_names, teller.names, rows.files[0])
                    yield teller.added(given)
                    advance(given.table.num_rows)

        if out is not None:
            write_tables(out, told(), name="-o")
        else:
            for _ in told():
                pass
    return teller.told(rows.notes)


class _Teller:
    """Asks a bundle about batches of rows, makes their new columns and counts."""

    def __init__(self, bundle: Bundle, point: int | None) -> None:
        self._bundle, self._point = bundle, point
        self._classes = _names(bundle.classes)
        self._rows = self._outside = 0
        self._predicted = np.zeros(len(bundle.classes), dtype=np.int64)
        self._decisions: Counter[str] = Counter()

    @property
    def names(self) -> list[str]:
        """Names of the new columns."""
        found = ["predicted", *(f"prob_{name}" for name in self._bundle.classes)]
        found += ["decision", "acted_as", "action"] if self._bundle.points else []
        return [*found, "out_of_scope"] if self._bundle.ood is not None else found

    def added(self, given: Given) -> pa.Table:
        """Return a batch with its new columns."""
        made, probs, outside = self._asked(given.scores)
        codes = probs.argmax(axis=1)
        self._rows += len(codes)
        self._predicted += np.bincount(codes, minlength=len(self._classes))
        new = [self._classes.take(pa.array(codes)), *map(pa.array, np.ascontiguousarray(probs.T))]
        if made is not None:
            self._decisions.update(made.counts)
            new += self._decision_columns(made)
        if outside is not None:
            self._outside += int(np.count_nonzero(outside))
            new.append(pa.array(outside))
        table = given.table
        for name, column in zip(self.names, new, strict=True):
            table = table.append_column(name, column)
        return table

    def told(self, notes: Sequence[str]) -> Predicted:
        """Return the counts."""
        names = [str(name) for name in self._bundle.classes]
        return Predicted(
            self._rows,
            dict(zip(names, self._predicted.tolist(), strict=True)),
            dict(self._decisions) if self._bundle.points else None,
            None if self._bundle.ood is None else self._outside,
            tuple(notes),
        )

    def _asked(
        self, scores: Mapping[str, Any]
    ) -> tuple[Decisions | None, FloatArray, NDArray[np.bool_] | None]:
        """Return the decisions, the probabilities, and which rows are out of scope."""
        bundle = self._bundle
        if bundle.points:
            made = bundle.decide(**scores, point=self._point)
            return made, made.probabilities, None if bundle.ood is None else made.out_of_scope
        given = GivenScores.of(bundle.classes, **scores)
        outside = flagged(bundle.ood, given, with_model=bundle.scorer is not None)
        return None, bundle.predict_proba(**scores), outside

    def _decision_columns(self, made: Decisions) -> list[pa.Array]:
        acted = made.acted_as.tolist()
        if pa.types.is_string(self._classes.type):
            acted = [None if name is None else str(name) for name in acted]
        return [
            pa.array(made.decision),
            pa.array(acted, self._classes.type),
            pa.array(made.action, pa.string()),
        ]


def _names(classes: Sequence[Any]) -> pa.Array:
    """Return the classes as an Arrow column: of their own type, or as text where they mix types."""
    same = len({type(name) for name in classes}) == 1
    return pa.array(list(classes) if same else [str(name) for name in classes])


def _refuse_taken(there: Sequence[str], new: Sequence[str], file: Path) -> None:
    for name in new:
        if name in there:
            raise InputError(
                f"{file} has a column '{name}' already, where the predictions would go: rename or "
                "drop it."
            )
