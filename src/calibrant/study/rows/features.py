"""The columns of a table that a model reads, as numbers, dates and texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from calibrant.data.encoders.category_column import is_code
from calibrant.data.encoders.date_format import ISO
from calibrant.data.encoders.number_format import PLAIN, null_missing
from calibrant.data.encoders.reading_error import ReadingError, list_rows
from calibrant.data.encoders.table_columns import (
    Column,
    Table,
    as_column,
    is_date,
    is_text,
)
from calibrant.data.encoders.table_encoder import is_counter
from calibrant.data.encoders.text_reading import (
    ReadingOptions,
    check_points,
    learn_format,
    read_as,
    read_texts,
)
from calibrant.data.row_files import Cells
from calibrant.errors import InputError
from calibrant.study.rows.source import StudySource, get_column, mask_filled
from calibrant.study.settings.config import StudyConfig

_UNNAMED = re.compile("|Unnamed: [0-9]+")
"""No name, or the one that pandas gives."""

_REPEATED = 2
"""Rows for each value, on average, of codes; amounts that are padded with zeros hardly repeat."""


def drop_unnamed_columns(
    table: pa.Table, config: StudyConfig, file: str, notes: list[str]
) -> pa.Table:
    """Return a table without unnamed columns that are empty or number the rows, and note them.

    Such a column tells nothing about a row. One that a setting names is left to the user.
    """
    named = {config.label, config.group, config.time, *config.drop, *config.categories}
    for name in table.column_names:
        if name in named or not _UNNAMED.fullmatch(name):
            continue
        what = _describe_idle(table.column(name))
        if what:
            table = table.drop_columns([name])
            shown = f"The column '{name}'" if name else "The column without a name"
            notes.append(f"{shown} of {Path(file).name} {what}: it was left out.")
    return table


def _describe_idle(column: pa.ChunkedArray) -> str:
    """Return why a column tells nothing, or an empty text."""
    if not np.any(mask_filled(column).to_numpy(zero_copy_only=False)):
        return "has no value"
    if pt.is_integer(column.type) and not column.null_count:
        numbers = column.to_numpy().astype(np.float64)
        return "numbers the rows" if is_counter(numbers) else ""
    return ""


def keep_codes(table: pa.Table, cells: Cells, config: StudyConfig, notes: list[str]) -> pa.Table:
    """Return a table with codes as the texts of their cells, and note them.

    Codes are digits of one width, some with leading zeros, that repeat.
    """
    others = {config.label, config.weight, config.group, config.time, *config.drop}
    codes = []
    for i, name in enumerate(table.column_names):
        whole = pt.is_integer(table.column(i).type) and name in cells.untyped
        if not whole or name in others:
            continue
        texts = null_missing(cells.table.column(name), config.missing)
        values = pc.unique(texts.drop_null()).to_pylist()
        if _REPEATED * len(values) <= len(texts) and is_code(values):
            table = table.set_column(i, name, cells.table.column(name))
            codes.append(name)
    if codes:
        names = ", ".join(f"'{name}'" for name in codes)
        what = "column {} has leading zeros and is a category"
        if len(codes) > 1:
            what = "columns {} have leading zeros and are categories"
        notes.append(f"The {what.format(names)}: write numbers that count or measure without them.")
    return table


def learn_features(logs: StudySource, names: Sequence[str], config: StudyConfig) -> Table:
    """Return the features of the logs; learn how texts with numbers and dates are written.

    Raises `InputError` for columns that no model can read, or that may be read in several ways.
    """
    columns: dict[str, Column] = {}
    for name in names:
        with _located(logs.file, logs.row_names):
            columns[name] = as_column(logs.table.column(name), name=f"column '{name}'")
    table = Table(tuple(names), tuple(columns.values()), len(logs), named=True)
    with _located(logs.file, logs.row_names):
        table = read_texts(table, reading_options(config), keep=config.categories)
        fractions = [name for name in names if pt.is_floating(logs.table.column(name).type)]
        for name in fractions if config.decimal is None else ():
            words = logs.cell_texts(name)
            if words is not None:
                check_points(name, words.combine_chunks(), table.formats or {})
    return table


def match_features(golden: StudySource, like: Table) -> Table:
    """Return the features of the golden set, read as those of the logs."""
    columns = []
    for name, known in zip(like.names, like.columns, strict=True):
        cells, words = get_column(golden.table, name, golden.file), golden.cell_texts(name)
        with _located(golden.file, golden.row_names):
            column = as_column(cells if words is None else words, name=f"column '{name}'")
            if is_text(known):
                columns.append(column)
                continue
            plain = ISO if is_date(known) else PLAIN
            columns.append(read_as(name, column, (like.formats or {}).get(name, plain)))
    return Table(like.names, tuple(columns), len(golden), named=True, formats=like.formats)


def read_written(
    column: pa.ChunkedArray, name: str, file: str, config: StudyConfig
) -> pa.ChunkedArray:
    """Return a text column other than a feature as numbers or dates, if that is what it holds."""
    with _located(file, lambda rows: [f"{row + 1:,}" for row in rows]):
        words = as_column(column, name=f"column '{name}'")
        learned = learn_format(name, words, reading_options(config))
    if learned is None:
        return column
    return pa.chunked_array([pa.array(learned.format.read(words)[0], from_pandas=True)])


def reading_options(config: StudyConfig) -> ReadingOptions:
    """Return what the settings say about texts that are numbers or dates."""
    return ReadingOptions(config.decimal, config.missing, config.dates)


@contextmanager
def _located(file: str, row_names: Callable[[Sequence[int]], list[str]]) -> Iterator[None]:
    """Name the file and its rows in errors about columns."""
    try:
        yield
    except ReadingError as error:

        def name_rows(rows: Sequence[int], n: int) -> str:
            return list_rows("data row", row_names(rows), n)

        subject = f"{file}: column '{error.column}'"
        raise InputError(error.describe(subject, name=name_rows, command=True)) from None
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
