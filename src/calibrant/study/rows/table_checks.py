"""Checks of the feature columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.types as pt

from calibrant.bundle.decisions import predict_columns
from calibrant.data import TableEncoder
from calibrant.data.encoders.column_warning import ignore_column_warnings
from calibrant.errors import InputError
from calibrant.files.source import BatchLocation

if TYPE_CHECKING:
    import pyarrow as pa

    from calibrant.study.rows.source import StudySource


def check_reserved_columns(features: Sequence[str], classes: Sequence[Any], file: str) -> None:
    """Raise `InputError` for features named like a column that `calibrant predict` adds.

    They could be trained on, but `calibrant predict` could not add its columns to such a file.

    Examples
    --------
    >>> check_reserved_columns(["age", "prob_yes"], ["no", "yes"], "churn.csv")
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: churn.csv: 'prob_yes' is the name of a column that calibrant
    predict adds: rename it, or leave it out with --drop 'prob_yes'.
    """
    taken = [name for name in predict_columns(classes) if name in features]
    if not taken:
        return
    names = " and ".join(f"'{name}'" for name in taken)
    are, it = ("is the name of a column", "it") if len(taken) == 1 else ("are columns", "them")
    drops = " ".join(f"--drop '{name}'" for name in taken)
    raise InputError(
        f"{file}: {names} {are} that calibrant predict adds: rename {it}, or leave {it} out with "
        f"{drops}."
    )


def check_finite(source: StudySource, features: Sequence[str]) -> None:
    """Raise `InputError` for infinite numbers in any split, before training."""
    for name in features:
        column = source.table[name]
        if not pt.is_floating(column.type):
            continue
        infinite = np.isinf(column.to_numpy())
        if infinite.any():
            row = int(np.argmax(infinite))
            where = BatchLocation(Path(source.file)).row(int(source.positions[row]))
            raise InputError(
                f"{where}: '{name}' is {column[row].as_py()}: give a finite number, or leave the "
                "cell empty where the value is missing."
            )


def check_table(table: pa.Table, categories: Sequence[str], file: str) -> None:
    """Raise `InputError` for dates, ids, free text and other columns that cannot be encoded."""
    reasons: dict[str, str] = {}
    for name in table.column_names:
        encoder = TableEncoder(categories=[name] if name in categories else [])
        try:
            with ignore_column_warnings():  # training warns about them
                encoder.fit(table.select([name]))
        except InputError as error:
            reasons[name] = str(error).removeprefix("X ").partition(": ")[0].rstrip(".")
    if reasons:
        drops = " ".join(f"--drop '{name}'" for name in reasons)
        raise InputError(f"{file}: {next(iter(reasons.values()))}: leave it out with {drops}.")
