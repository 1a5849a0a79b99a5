"""What a bundle says about the rows of a file, batch by batch, in constant memory."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from pathlib import Path

from calibrant.bundle import Bundle
from calibrant.bundle.scope import flag_rows
from calibrant.bundle.scores import ModelScores
from calibrant.workflows.bundle_rows import BundleRows
from calibrant.workflows.scored_rows import Given
from calibrant.workflows.write_predictions import Predicted, Said, Teller, refuse_taken, tell_file

__all__ = ["predict_file"]


def predict_file(
    bundle: Bundle, rows: BundleRows, out: Path | None, *, point: int | None = None
) -> Predicted:
    """Score every row and write the rows with what the bundle says to `out`, or only count them."""
    scoped = bundle.ood is not None
    teller = Teller(bundle.classes, decides=bool(bundle.points), scoped=scoped)

    def said() -> Generator[Said, None, None]:
        with closing(rows.batches()) as batches:  # ends its threads, whatever happens here
            for given in batches:
                refuse_taken(given.table.column_names, teller.names, rows.files[0])
                yield _said(bundle, given, point)

    return tell_file(said(), teller, rows, out)


def _said(bundle: Bundle, given: Given, point: int | None) -> Said:
    """Ask a bundle about a batch of rows."""
    if bundle.points:
        made = bundle.decide(**given.scores, point=point)
        return Said(
            given.table,
            made.probabilities,
            made.decision,
            made.acted_as.tolist(),
            made.action.tolist(),
            None if bundle.ood is None else made.out_of_scope,
        )
    scores = ModelScores.from_input(bundle.classes, **given.scores)
    outside = flag_rows(bundle.ood, scores, with_model=bundle.scorer is not None)
    return Said(given.table, bundle.predict_proba(**given.scores), out_of_scope=outside)
