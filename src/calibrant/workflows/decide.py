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

from calibrant.errors import InputError, SplitMisuse
from calibrant.files.write_table import write_tables
from calibrant.inputs import FloatArray
from calibrant.scores.checks import FLOOR, floor_note
from calibrant.scores.files import count_rows
from calibrant.scores.tables import ScoreTable, TableBatch
from calibrant.thresholds import Band, OperatingPoint, OperatingPoints
from calibrant.thresholds.after.transfer import Transfer, check_transfer
from calibrant.thresholds.proof.largest_weight import check_largest_weight
from calibrant.workflows.point_file import PointFile
from calibrant.workflows.point_rows import read_layout, read_point_rows, reorder_classes
from calibrant.workflows.progress import Progress, no_progress

ACT, ABSTAIN = "act", "abstain"
SCORE, THRESHOLD = "decision_score", "decision_threshold"

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
    """Return the new columns: decisions with their scores, and for any class the prediction."""
    if isinstance(result, Band):
        return _decide_band(result, scores)
    if isinstance(result, OperatingPoints):
        return _flag_classes(result, scores)
    decision_scores, acts = _judge(result, scores)
    new: dict[str, NDArray[Any]] = {"decision": np.where(acts, ACT, ABSTAIN)}
    if result.of is None:
        (array,) = scores.values()
        names = np.array([str(name) for name in result.classes])
        new["predicted"] = names[array.argmax(axis=1)]
    return {**new, SCORE: decision_scores, THRESHOLD: _limits(result, len(acts))}


def _decide_band(band: Band, scores: Mapping[str, NDArray[Any]]) -> Columns:
    """Return the decision of a band, and the score and threshold of the side that decided."""
    above, act = _judge(band.upper, scores)
    below, keep = _judge(band.lower, scores)
    clear = ~keep & ~act
    return {
        "decision": np.where(act, "act", np.where(keep, "person", "clear")),
        SCORE: np.where(clear, below, above),
        THRESHOLD: np.where(clear, *(_limits(side, len(act)) for side in (band.lower, band.upper))),
    }


def _flag_classes(points: OperatingPoints, scores: Mapping[str, NDArray[Any]]) -> Columns:
    flags: dict[str, NDArray[Any]] = {}
    numbers: dict[str, NDArray[Any]] = {}
    for name, point in points.points.items():
        numbers[f"{SCORE}_{name}"], flags[f"flag_{name}"] = _judge(point, scores)
        numbers[f"{THRESHOLD}_{name}"] = _limits(point, len(flags[f"flag_{name}"]))
    return {**flags, **numbers}


def _judge(
    point: OperatingPoint, scores: Mapping[str, NDArray[Any]]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the decision scores, and which rows reach the threshold."""
    decision_scores = point.decision_scores(**scores)
    return decision_scores, decision_scores >= point.decision_threshold


def _limits(point: OperatingPoint, n: int) -> FloatArray:
    return np.full(n, point.decision_threshold)


def _count_decisions(result: Result, new: Columns) -> dict[str, int]:
    """Count the decisions of a batch or, for several classes, the flags."""
    if isinstance(result, OperatingPoints):
        return {str(name): int(new[f"flag_{name}"].sum()) for name in result.points}
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


CONFIDENCE = 0.95  # Joint confidence of all verdicts


@dataclass(frozen=True)
class PromiseCheck:
    """Verdict on each point, by class or side of the band."""

    transfers: tuple[tuple[str, Transfer], ...]

    @property
    def verdict(self) -> str:
        """`broken` if any point is, `kept` if all are, else `undecidable`."""
        verdicts = {check.verdict for _, check in self.transfers}
        if "broken" in verdicts:
            return "broken"
        return "kept" if verdicts == {"kept"} else "undecidable"

    @property
    def lines(self) -> list[str]:
        """Each verdict as a sentence."""
        if len(self.transfers) == 1:
            return [self.transfers[0][1].text]
        return [f"“{name}”: {check.text}" for name, check in self.transfers]

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict, with those of the points if there are several."""
        if len(self.transfers) == 1:
            return self.transfers[0][1].to_dict()
        points = [{"of": name, **check.to_dict()} for name, check in self.transfers]
        return {"verdict": self.verdict, "points": points}


def check_rows(
    loaded: PointFile,
    files: list[Path],
    columns: dict[str, Any],
    *,
    largest_weight: float | None = None,
) -> PromiseCheck:
    """Check every promise on labelled rows, read into memory.

    Rows that chose the point or fitted its calibrator are refused: there the promise holds by
    construction.
    """
    layout = read_layout(files, label=columns["label"])
    unordered = read_point_rows(files, columns, kind=layout.kind, calibration=loaded.calibration)
    if unordered.fingerprint == loaded.chosen_on:
        raise SplitMisuse(
            f"--check needs rows that did not choose the point, but {loaded.path} was chosen on "
            f"these very rows of {files[0]}: give later labelled rows."
        )
    if loaded.chosen_by is not None and loaded.chosen_by.shares(unordered.sketch_input):
        raise SplitMisuse(
            f"--check needs rows that did not choose the point, but {files[0]} contains some "
            f"that chose {loaded.path}: give later labelled rows only."
        )
    if unordered.seen:
        raise SplitMisuse(
            f"--check needs rows that the calibrator was not fitted on, but that of {loaded.path} "
            f"was fitted on those of {files[0]}, or on some of them: give later labelled rows."
        )
    rows = reorder_classes(unordered, loaded.classes, files=(str(files[0]), str(loaded.path)))
    points = loaded.points
    level = 1 - (1 - CONFIDENCE) / len(points)
    sides = ("act", "clear") if isinstance(loaded.result, Band) else [str(p.of) for p in points]
    check_largest_weight(largest_weight, rows.weights, name="--largest-weight")
    weighting: dict[str, Any] = {"weights": rows.weights, "largest_weight": largest_weight}
    transfers = (
        check_transfer(point, rows.labels, confidence=level, **weighting, **rows.scores)
        for point in points
    )
    return PromiseCheck(tuple(zip(sides, transfers, strict=True)))
