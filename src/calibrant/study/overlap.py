"""Rows that stand in the logs and in the golden set: named, or taken out of the logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.data.row_identity import same_rows
from calibrant.errors import SplitMisuse
from calibrant.study.config import StudyConfig

if TYPE_CHECKING:
    from calibrant.study.reading import Source

__all__ = ["without_overlap"]


def without_overlap(
    logs: Source, golden: Source, columns: list[str], config: StudyConfig, notes: list[str]
) -> Source:
    """Return the logs without rows that the golden set holds too.

    A model that has learned a golden row by heart would be judged on it. With `overlap="refuse"`
    the first such rows are named instead.
    """
    both = same_rows(logs.table, golden.table, columns)
    if not len(both):
        return logs
    shown = [
        f"{golden.places[there] + 1:,} (row {logs.places[here] + 1:,} of the logs)"
        for here, there in both[:5]
    ]
    repeated = np.unique([here for here, _ in both])
    if config.overlap == "refuse":
        rows = "row stands" if len(repeated) == 1 else "rows stand"
        raise SplitMisuse(
            f"{len(repeated):,} {rows} both in {logs.file} and in {golden.file}, so the model "
            f"would be judged on what it learned by heart: golden data rows {', '.join(shown)}: "
            "take them out of one of the files, or add --overlap drop to leave them out of the "
            "logs."
        )
    were = "1 row was" if len(repeated) == 1 else f"{len(repeated):,} rows were"
    notes.append(f"{were} left out of the logs, as the golden set holds the same.")
    return logs.take(np.setdiff1d(np.arange(len(logs)), repeated))
