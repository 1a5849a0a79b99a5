"""Predict the rows of a file with a bundle, batch by batch."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from pathlib import Path

from calibrant.bundle import Bundle
from calibrant.bundle.scope import flag_rows
from calibrant.bundle.scores import ModelScores
from calibrant.workflows.bundle_rows import BundleRows
from calibrant.workflows.progress import Progress, no_progress
from calibrant.workflows.scored_rows import ScoredBatch
from calibrant.workflows.write_predictions import (
    PredictedRows,
    PredictionSummary,
    PredictionWriter,
    refuse_existing_columns,
    write_predictions,
)


def predict_file(
    bundle: Bundle,
    rows: BundleRows,
    out: Path | None,
    *,
    point: int | None = None,
    progress: Progress = no_progress,
) -> PredictionSummary:
    """Write the rows with their predictions to `out`, or only count them."""
    scoped = bundle.ood is not None
    writer = PredictionWriter(bundle.classes, decides=bool(bundle.points), scoped=scoped)

    def predicted_batches() -> Generator[PredictedRows, None, None]:
        with closing(rows.batches()) as batches:  # ends its threads on errors too
            for batch in batches:
                refuse_existing_columns(batch.table.column_names, writer.names, rows.files[0])
                yield _predict_batch(bundle, batch, point)

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
        )
    scores = ModelScores.from_input(bundle.classes, **batch.scores)
    outside = flag_rows(bundle.ood, scores, with_model=bundle.scorer is not None)
    return PredictedRows(batch.table, bundle.predict_proba(**batch.scores), out_of_scope=outside)
