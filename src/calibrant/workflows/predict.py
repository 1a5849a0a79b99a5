"""Prediction of files with a bundle: score, decide and write rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.bundle import Bundle
from calibrant.bundle.decisions import WORDS, predict_columns
from calibrant.bundle.reasons import list_reasons, why_unexplained
from calibrant.bundle.scope import flag_rows
from calibrant.bundle.scores import ModelScores
from calibrant.data.explanation import Reason
from calibrant.errors import InputError
from calibrant.files.write_table import write_tables
from calibrant.inputs import FloatArray
from calibrant.workflows.bundle_rows import BundleRows
from calibrant.workflows.progress import Progress, no_progress
from calibrant.workflows.scored_rows import ScoredBatch

_BLOCK = 1024  # Rows explained at a time, to limit memory


@dataclass(frozen=True)
class PredictionSummary:
    """Counts of predictions."""

    rows: int
    predicted: Mapping[str, int]  # rows per most probable class
    decisions: Mapping[str, int] | None  # rows per decision; None without an operating point
    out_of_scope: int | None  # rows out of scope; None without a rule
    notes: tuple[str, ...] = ()
    rules: tuple[Mapping[str, Any], ...] = ()  # the rules that decided


@dataclass(frozen=True)
class PredictedRows:
    """A batch of rows with predictions."""

    table: pa.Table  # columns to write again
    probabilities: FloatArray  # (n, K)
    decision: NDArray[Any] | None = None  # per row; None without an operating point
    acted_as: Sequence[Any] | None = None
    action: Sequence[str | None] | None = None
    out_of_scope: NDArray[np.bool_] | None = None  # (n,) booleans; None without a rule
    ids: Sequence[str] | None = None  # ids of the stored predictions; None if nothing is stored
    # `SCORE_COLUMNS` per row; None if a service does not return them
    scores: tuple[Sequence[Any], Sequence[Any], Sequence[Any]] | None = None
    # The strongest parts of each row, None for a row without; None if they were not asked for
    reasons: Sequence[Sequence[Reason] | None] | None = None


class FileRows(Protocol):
    """Input rows of local or remote predictions."""

    @property
    def files(self) -> list[Path]:
        """The input files."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes to show the user."""

    def estimate(self) -> int | None:
        """Estimate the number of rows."""


class PredictionWriter:
    """Adds prediction columns to batches, and counts; without rules their scores are unknown."""

    def __init__(
        self,
        classes: Sequence[Any],
        *,
        decides: bool,
        scoped: bool,
        stored: bool = False,
        explained: bool = False,
        rules: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._names = [str(name) for name in classes]
        self._classes = _column(classes)
        self._decides, self._scoped, self._stored = decides, scoped, stored
        self._explained = explained
        self._rules = tuple(rules)
        self._rows = self._outside = 0
        self._predicted = np.zeros(len(classes), dtype=np.int64)
        self._decisions: Counter[str] = Counter()

    @property
    def names(self) -> list[str]:
        """Names of the new columns."""
        return predict_columns(
            self._names,
            decides=self._decides,
            scoped=self._scoped,
            stored=self._stored,
            scored=bool(self._rules),
            explained=self._explained,
        )

    def add_columns(self, batch: PredictedRows) -> pa.Table:
        """Return a batch with its new columns."""
        codes = batch.probabilities.argmax(axis=1)
        self._rows += len(codes)
        self._predicted += np.bincount(codes, minlength=len(self._names))
        probs = np.ascontiguousarray(batch.probabilities.T)
        new = [self._classes.take(pa.array(codes)), *map(pa.array, probs)]
        if batch.decision is not None:
            words = {word: int(np.count_nonzero(batch.decision == word)) for word in WORDS}
            self._decisions.update(words)
            new += self._decision_columns(batch)
        if batch.out_of_scope is not None:
            self._outside += int(np.count_nonzero(batch.out_of_scope))
            new.append(pa.array(batch.out_of_scope))
        if batch.reasons is not None:
            new.append(pa.array([_to_json(each) for each in batch.reasons], pa.string()))
        if batch.ids is not None:
            new.append(pa.array(batch.ids, pa.string()))
        table = batch.table
        for name, column in zip(self.names, new, strict=True):
            table = table.append_column(name, column)
        return table

    def summarise(self, notes: Sequence[str]) -> PredictionSummary:
        """Return the counts."""
        return PredictionSummary(
            self._rows,
            dict(zip(self._names, self._predicted.tolist(), strict=True)),
            dict(self._decisions) if self._decides else None,
            self._outside if self._scoped else None,
            tuple(notes),
            self._rules,
        )

    def _decision_columns(self, batch: PredictedRows) -> list[pa.Array]:
        acted = list(batch.acted_as or [])
        if pa.types.is_string(self._classes.type):
            acted = [None if name is None else str(name) for name in acted]
        return [
            pa.array(batch.decision),
            pa.array(acted, self._classes.type),
            pa.array(list(batch.action or []), pa.string()),
            *(_score_columns(batch.scores) if batch.scores is not None else ()),
        ]


def _score_columns(scores: tuple[Sequence[Any], Sequence[Any], Sequence[Any]]) -> list[pa.Array]:
    """Return rule, score and threshold as columns, null where no rule was applied."""
    rules, *numbers = scores
    return [
        pa.array(list(rules), pa.string()),
        *(pa.array(values, pa.float64(), from_pandas=True) for values in numbers),
    ]


def _to_json(reasons: Sequence[Reason] | None) -> str | None:
    """Return reasons as JSON text, which every format of tables can hold."""
    if reasons is None:
        return None
    return json.dumps([each._asdict() for each in reasons], ensure_ascii=False)


def write_predictions(
    batches: Generator[PredictedRows, None, None],
    writer: PredictionWriter,
    rows: FileRows,
    out: Path | None,
    *,
    progress: Progress = no_progress,
) -> PredictionSummary:
    """Write rows with their predictions to `out`, or only count them."""
    with progress("predicting", rows.estimate()) as advance:

        def tables() -> Iterator[pa.Table]:
            with closing(batches):  # ends its threads
                for batch in batches:
                    advance(0)  # ends here if the user interrupted
                    yield writer.add_columns(batch)
                    advance(batch.table.num_rows)

        if out is not None:
            write_tables(out, tables(), name="-o")
        else:
            for _ in tables():
                pass
    return writer.summarise(rows.notes)


def refuse_existing_columns(existing: Sequence[str], new: Sequence[str], file: Path) -> None:
    """Refuse a file that already has one of the new columns."""
    for name in new:
        if name in existing:
            raise InputError(f"{file} already has a column '{name}': rename or drop it.")


def _column(classes: Sequence[Any]) -> pa.Array:
    """Return the classes as an Arrow array, as text if their types differ."""
    one_type = len({type(name) for name in classes}) == 1
    return pa.array(list(classes) if one_type else [str(name) for name in classes])


def predict_file(
    bundle: Bundle,
    rows: BundleRows,
    out: Path | None,
    *,
    point: int | None = None,
    reasons: int = 0,
    progress: Progress = no_progress,
) -> PredictionSummary:
    """Write the rows with their predictions to `out`, or only count them.

    The column `reasons` has at most that number of parts of each row; 0 leaves it out.
    """
    scoped = bundle.ood is not None
    rules = [rule.to_dict() for rule in bundle.active_rules(point)]
    writer = PredictionWriter(
        bundle.classes,
        decides=bool(bundle.points),
        scoped=scoped,
        explained=reasons > 0,
        rules=rules,
    )

    def predicted_batches() -> Generator[PredictedRows, None, None]:
        with closing(rows.batches()) as batches:  # ends its threads on errors too
            for batch in batches:
                refuse_existing_columns(batch.table.column_names, writer.names, rows.files[0])
                predicted = _predict_batch(bundle, batch, point)
                yield _add_reasons(bundle, batch, predicted, reasons) if reasons else predicted

    return write_predictions(predicted_batches(), writer, rows, out, progress=progress)


def _predict_batch(bundle: Bundle, batch: ScoredBatch, point: int | None) -> PredictedRows:
    """Predict one batch."""
    if bundle.points:
        decisions = bundle.decide(**batch.scores, point=point)
        return PredictedRows(
            batch.table,
            decisions.probabilities,
            decisions.decision,
            decisions.acted_as.tolist(),
            decisions.action.tolist(),
            None if bundle.ood is None else decisions.out_of_scope,
            scores=(
                decisions.decision_rule.tolist(),
                decisions.decision_score.tolist(),
                decisions.decision_threshold.tolist(),
            ),
        )
    scores = ModelScores.from_input(bundle.classes, **batch.scores)
    outside = flag_rows(bundle.ood, scores, with_model=bundle.scorer is not None)
    return PredictedRows(batch.table, bundle.predict_proba(**batch.scores), out_of_scope=outside)


def _add_reasons(
    bundle: Bundle, batch: ScoredBatch, predicted: PredictedRows, most: int
) -> PredictedRows:
    """Add the strongest parts of each row for its predicted class."""
    logits, labels = batch.scores["logits"], predicted.probabilities.argmax(axis=1).tolist()
    reasons: list[list[Reason]] = []
    for start in range(0, len(labels), _BLOCK):
        rows = slice(start, start + _BLOCK)
        explained = bundle.explain(batch.inputs.slice(start, _BLOCK)).rows
        reasons += list_reasons(explained, logits[rows], labels[rows], most)
    return replace(predicted, reasons=reasons)


def check_gives_reasons(bundle: Bundle, reasons: int) -> None:
    """Refuse `--reasons` for a bundle whose model gives none."""
    why = why_unexplained(bundle.scorer) if reasons else None
    if why is not None:
        raise InputError(f"--reasons {reasons}: {why}: leave --reasons out, or use such a model.")
