"""Words that stand for a missing label."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import pyarrow as pa
import pyarrow.compute as pc

from calibrant.errors import InputError
from calibrant.study.rows.source import is_text
from calibrant.study.settings.config import StudyConfig

MISSING_LABELS = (
    "NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "Null", "null", "NaN", "nan", "NAN", "NaT",
)  # fmt: skip
"""Words that programs write for a missing value; "none" and "-" may be the name of a class."""


def mask_labels(
    labels: pa.ChunkedArray, config: StudyConfig, file: str, notes: list[str]
) -> pa.ChunkedArray:
    """Return a mask of the rows whose label is not a word for a missing one, and note the others.

    A word is a class if the settings name it, or if the label column is in `categories`.
    """
    every = pa.chunked_array([pa.array([True] * len(labels), pa.bool_())])
    if not is_text(labels) or config.label in config.categories:
        return every
    words = [
        word for word in (*MISSING_LABELS, *config.missing) if word not in config.named_classes
    ]
    missing = pc.fill_null(pc.is_in(labels, value_set=pa.array(words, labels.type)), False)
    n = int(pc.sum(missing).as_py() or 0)
    if not n:
        return every
    shown = ", ".join(f"'{word}'" for word in pc.unique(labels.filter(missing)).to_pylist())
    remedy = f"add --category {quote(str(config.label))} if it is the name of a class"
    if n == len(labels):
        raise InputError(
            f"{file}: every label in '{config.label}' is {shown}, which stands for a missing one: "
            f"check the file, or {remedy}."
        )
    rows = "1 row" if n == 1 else f"{n:,} rows"
    notes.append(
        f"{rows} of {Path(file).name} with {shown} in '{config.label}', which stands for a missing "
        f"label, {'was' if n == 1 else 'were'} left out: {remedy}."
    )
    return pc.invert(missing)
