"""Decisions for the rows of a score file, batch by batch, in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.cli import interruption
from calibrant.cli.progress import progress
from calibrant.errors import InputError
from calibrant.files.write_table import write_tables
from calibrant.scores.checks import FLOOR, floor_note
from calibrant.scores.files import count_rows
from calibrant.scores.tables import ScoreTable, TableBatch
from calibrant.thresholds import Band, OperatingPoint, OperatingPoints
from calibrant.workflows.point_file import PointFile

__all__ = ["ABSTAIN", "ACT", "Decided", "decide_file", "decisions_of", "zero_as"]

ACT, ABSTAIN = "act", "abstain"

Columns = Mapping[str, NDArray[Any]]
Result = OperatingPoint | OperatingPoints | Band


@dataclass(frozen=True)
class Decided:
    """What became of the rows.

    Parameters
    ----------
    rows : how many there were
    decisions : how many rows got each decision; of several classes, how many each flags
    notes : sentences that a user should be told
    """

    rows: int
    decisions: Mapping[str, int]
    notes: tuple[str, ...] = ()


def decide_file(
    loaded: PointFile, table: ScoreTable, out: Path | None, *, name: str = "-o"
) -> Decided:
    """Decide on every row and write the rows with their decisions to `out`, or only count them."""
    counts: Counter[str] = Counter()
    rows = floored = 0
    scorer = _Scorer(loaded, table)
    with progress("deciding", count_rows(table.files)) as advance:

        def decided() -> Iterator[pa.Table]:
            nonlocal rows, floored
            for batch in table.batches():
                new = decisions_of(loaded.result, scorer.scores(batch, first=rows))
                counts.update(_counted(loaded.result, new))
                rows += batch.table.num_rows
                floored += batch.floored
                yield _with_columns(batch.table, new, table.files[0])
                advance(batch.table.num_rows)
                interruption.check()

        if out is not None:
            write_tables(out, decided(), name=name)
        else:
            for _ in decided():
                pass
    notes = list(table.notes)
    if floored and loaded.calibration is not None:
        notes.append(floor_note(floored, loaded.calibration.zero_as))
    return Decided(rows, dict(counts), tuple(notes))


def decisions_of(result: Result, scores: Mapping[str, NDArray[Any]]) -> Columns:
    """Return the new columns: the decision, and what is accepted where that is a prediction."""
    if isinstance(result, Band):
        return {"decision": result.decide(**scores)}
    if isinstance(result, OperatingPoints):
        return {f"flag_{name}": acted for name, acted in result.act(**scores).items()}
    new: dict[str, NDArray[Any]] = {"decision": np.where(result.act(**scores), ACT, ABSTAIN)}
    if result.of is None:
        (array,) = scores.values()
        names = np.array([str(name) for name in result.classes])
        new["predicted"] = names[array.argmax(axis=1)]
    return new


def _counted(result: Result, new: Columns) -> dict[str, int]:
    """Count each decision of a batch; of several classes, the rows that each flags."""
    if isinstance(result, OperatingPoints):
        return {name.removeprefix("flag_"): int(flag.sum()) for name, flag in new.items()}
    words = ("act", "person", "clear") if isinstance(result, Band) else (ACT, ABSTAIN)
    return {word: int((new["decision"] == word).sum()) for word in words}


class _Scorer:
    """Brings the scores of a batch into the order and form that a point was chosen on."""

    def __init__(self, loaded: PointFile, table: ScoreTable) -> None:
        self._order = table.order(loaded.classes, name=str(loaded.path))
        self._calibration = loaded.calibration
        self._inside: list[int] = []
        if loaded.calibration is not None:
            self._inside = loaded.calibration.order(loaded.classes, file=str(loaded.path))

    def scores(self, batch: TableBatch, *, first: int) -> dict[str, NDArray[Any]]:
        """Return `probs` or `logits` of a batch; `first` rows came before it."""
        if self._calibration is not None:
            logits = batch.logits[:, self._order]
            return {"logits": self._calibration.log_probs(logits, self._inside, first=first)}
        kind, array = ("logits", batch.logits) if batch.probs is None else ("probs", batch.probs)
        # In one block of memory, so that sums over classes round as when the point was chosen.
        return {kind: np.ascontiguousarray(array[:, self._order], dtype=np.float64)}


def zero_as(loaded: PointFile) -> float:
    """Return what a probability of 0 counts as where its logarithm is needed."""
    return FLOOR if loaded.calibration is None else loaded.calibration.zero_as


def _with_columns(table: pa.Table, new: Columns, file: Path) -> pa.Table:
    for name, column in new.items():
        if name in table.column_names:
            raise InputError(
                f"{file} has a column '{name}' already, where the decisions would go: rename or "
                "drop it."
            )
        table = table.append_column(name, pa.array(column))
    return table
