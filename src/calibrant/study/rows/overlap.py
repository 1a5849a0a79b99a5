"""Rows that are both in the logs and in the golden set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.data.row_identity import same_rows
from calibrant.errors import SplitMisuse
from calibrant.study.settings.config import StudyConfig

if TYPE_CHECKING:
    from calibrant.study.rows.source import StudySource


def resolve_overlap(
    logs: StudySource,
    golden: StudySource,
    columns: list[str],
    config: StudyConfig,
    notes: list[str],
) -> StudySource:
    """Return the logs without the rows that are also in the golden set.

    A model could memorise such rows and would then be evaluated on them. With `overlap="refuse"`
    they raise `SplitMisuse`, as do logs of which no row is left.
    """
    both = same_rows(logs.table, golden.table, columns)
    if not len(both):
        return logs
    unit, row, units = logs.unit, "row ", "data rows"
    if logs.images is not None:
        row, units = "", "images"
    log_names, golden_names = logs.row_names(both[:5, 0]), golden.row_names(both[:5, 1])
    pairs = [
        f"{golden_name} ({row}{log_name} of the logs)"
        for log_name, golden_name in zip(log_names, golden_names, strict=True)
    ]
    repeated = np.unique(both[:, 0])
    if config.overlap == "refuse":
        rows = f"{unit} is" if len(repeated) == 1 else f"{unit}s are"
        raise SplitMisuse(
            f"{len(repeated):,} {rows} both in {logs.file} and in {golden.file}, so the model "
            f"would be evaluated on rows it was trained on: golden {units} {', '.join(pairs)}: "
            "remove them from one of the files, or add --overlap drop to leave them out of the "
            "logs."
        )
    if len(repeated) == len(logs):
        raise SplitMisuse(
            f"no {unit} of {logs.file} is left to train on, because all {len(logs):,} of them are "
            f"also in {golden.file}: give logs that are not the golden set, or leave --golden out "
            f"to hold out {unit}s of the logs."
        )
    were = f"1 {unit} was" if len(repeated) == 1 else f"{len(repeated):,} {unit}s were"
    also = "it is" if len(repeated) == 1 else "they are"
    notes.append(f"{were} left out of the logs because {also} also in the golden set.")
    return logs.take(np.setdiff1d(np.arange(len(logs)), repeated))
