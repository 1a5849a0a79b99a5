"""Rows that stand in the logs and in the golden set: named, or taken out of the logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.data.row_identity import same_rows
from calibrant.errors import SplitMisuse
from calibrant.study.settings.config import StudyConfig

if TYPE_CHECKING:
    from calibrant.study.rows.source import Source

__all__ = ["without_overlap"]


def without_overlap(
    logs: Source, golden: Source, columns: list[str], config: StudyConfig, notes: list[str]
) -> Source:
    """Return the logs without rows that the golden set holds too.

    A model that has learned a golden row by heart would be judged on it. With `overlap="refuse"`
    the first such rows are named instead, and logs of which no row is left are refused.
    """
    both = same_rows(logs.table, golden.table, columns)
    if not len(both):
        return logs
    unit, row, units = logs.unit, "row ", "data rows"
    if logs.images is not None:
        row, units = "", "images"
    mine, theirs = logs.shown(both[:5, 0]), golden.shown(both[:5, 1])
    shown = [f"{there} ({row}{here} of the logs)" for here, there in zip(mine, theirs, strict=True)]
    repeated = np.unique(both[:, 0])
    if config.overlap == "refuse":
        rows = f"{unit} stands" if len(repeated) == 1 else f"{unit}s stand"
        raise SplitMisuse(
            f"{len(repeated):,} {rows} both in {logs.file} and in {golden.file}, so the model "
            f"would be judged on what it learned by heart: golden {units} {', '.join(shown)}: "
            "take them out of one of the files, or add --overlap drop to leave them out of the "
            "logs."
        )
    if len(repeated) == len(logs):
        raise SplitMisuse(
            f"no {unit} of {logs.file} is left to train on, for {golden.file} holds all "
            f"{len(logs):,} of them too: give logs that are not the golden set, or leave --golden "
            f"out to hold {unit}s of the logs out."
        )
    were = f"1 {unit} was" if len(repeated) == 1 else f"{len(repeated):,} {unit}s were"
    notes.append(f"{were} left out of the logs, as the golden set holds the same.")
    return logs.take(np.setdiff1d(np.arange(len(logs)), repeated))
