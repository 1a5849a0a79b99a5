"""Decide on the rows of a score file, batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.files.write_table import write_tables
from calibrant.scores.checks import FLOOR, floor_note
from calibrant.scores.files import count_rows
from calibrant.scores.tables import ScoreTable, TableBatch
from calibrant.thresholds import Band, OperatingPoint, OperatingPoints
from calibrant.workflows.point_file import PointFile
from calibrant.workflows.progress import Progress, no_progress

ACT, ABSTAIN = "act", "abstain"

Columns = Mapping[str, NDArray[Any]]
Result = OperatingPoint | OperatingPoints | Band


@dataclass(frozen=True)
class DecisionCounts:
    """Number of rows per decision or, for several classes, per flag."""

    rows: int
    decisions: Mapping[str, int]
    notes: tuple[str, ...] = ()


def decide_file(
    point_file: PointFile,
    table: ScoreTable,
    out: Path | None,
    *,
    name: str = "-o",
    progress: Progress = no_progress,
) -> DecisionCounts:
    """Write the rows with their decisions to `out`, or only count them."""
    counts: Counter[str] = Counter()
    rows = floored = 0
    scorer = _Scorer(point_file, table)
    with progress("deciding", count_rows(table.files)) as advance:

        def decided_tables() -> Iterator[pa.Table]:
            nonlocal rows, floored
            for batch in table.batches():
                new = decide_batch(point_file.result, scorer.scores(batch, first=rows))
                counts.update(_count_decisions(point_file.result, new))
                rows += batch.table.num_rows
                floored += batch.floored
                yield _with_columns(batch.table, new, table.files[0])
                advance(batch.table.num_rows)

        if out is not None:
            write_tables(out, decided_tables(), name=name)
        else:
            for _ in decided_tables():
                pass
    notes = list(table.notes)
    if floored and point_file.calibration is not None:
        notes.append(floor_note(floored, point_file.calibration.zero_as))
    return DecisionCounts(rows, dict(counts), tuple(notes))


def decide_batch(result: Result, scores: Mapping[str, NDArray[Any]]) -> Columns:
    """Return the new columns: the decision and, for any class, the prediction."""
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


def _count_decisions(result: Result, new: Columns) -> dict[str, int]:
    """Count the decisions of a batch or, for several classes, the flags."""
    if isinstance(result, OperatingPoints):
        return {name.removeprefix("flag_"): int(flag.sum()) for name, flag in new.items()}
    words = ("act", "person", "clear") if isinstance(result, Band) else (ACT, ABSTAIN)
    return {word: int((new["decision"] == word).sum()) for word in words}


class _Scorer:
    """Orders and calibrates the scores of a batch as when the point was chosen."""

    def __init__(self, point_file: PointFile, table: ScoreTable) -> None:
        self._order = table.order(point_file.classes, name=str(point_file.path))
        self._calibration = point_file.calibration
        self._inside: list[int] = []
        if point_file.calibration is not None:
            self._inside = point_file.calibration.order(
                point_file.classes, file=str(point_file.path)
            )

    def scores(self, batch: TableBatch, *, first: int) -> dict[str, NDArray[Any]]:
        """Return `probs` or `logits` of a batch that starts at row `first`."""
        if self._calibration is not None:
            logits = batch.logits[:, self._order]
            return {"logits": self._calibration.log_probs(logits, self._inside, first=first)}
        kind, array = ("logits", batch.logits) if batch.probs is None else ("probs", batch.probs)
        # Contiguous, so that sums over classes round as when the point was chosen.
        return {kind: np.ascontiguousarray(array[:, self._order], dtype=np.float64)}


def zero_replacement(point_file: PointFile) -> float:
    """Return the value that replaces a probability of 0 in logarithms."""
    return FLOOR if point_file.calibration is None else point_file.calibration.zero_as


def _with_columns(table: pa.Table, new: Columns, file: Path) -> pa.Table:
    for name, column in new.items():
        if name in table.column_names:
            raise InputError(f"{file} already has a column '{name}': rename or drop it.")
        table = table.append_column(name, pa.array(column))
    return table
