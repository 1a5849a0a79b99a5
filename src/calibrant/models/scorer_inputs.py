"""What a running model is given: a column of texts, or a table with the columns it knows."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import Any

from calibrant.data.input_columns import InputColumns, listed, refuse_lacking
from calibrant.data.number_column import NumberColumn
from calibrant.data.table_columns import as_table
from calibrant.data.table_encoder import TableEncoder
from calibrant.data.text_encoder import TextEncoder, as_text_column
from calibrant.errors import InputError

__all__ = ["as_inputs", "columns_of"]


def columns_of(encoder: TextEncoder | TableEncoder, column: str | None) -> InputColumns:
    """Return the columns that an encoder reads."""
    if isinstance(encoder, TextEncoder):
        return InputColumns(texts=(str(column),))
    numbers = [each.name for each in encoder.columns_ if isinstance(each, NumberColumn)]
    texts = [each.name for each in encoder.columns_ if not isinstance(each, NumberColumn)]
    return InputColumns(tuple(numbers), tuple(texts))


def as_inputs(inputs: Any, encoder: TextEncoder | TableEncoder, column: str | None) -> Any:
    """Return texts as an Arrow column, or a table as columns; refuse anything else."""
    if isinstance(encoder, TextEncoder):
        _refuse_numbers(inputs, str(column))
        return as_text_column(_text_column(inputs, str(column)), name="inputs")
    if isinstance(inputs, list | tuple) and inputs and isinstance(inputs[0], str):
        raise InputError(
            "inputs must be a table, got a list of texts: give a DataFrame, a dict of columns or a "
            f"list of dicts with {listed(columns_of(encoder, column).names)}."
        )
    rows = as_table(inputs, name="inputs", wanted=encoder.wants)
    if encoder.named_ and rows.named:
        refuse_lacking([each.name for each in encoder.columns_], rows.names)
    return rows


def _text_column(inputs: Any, column: str) -> Any:
    """Take the column of texts out of a table; anything else is taken as that column."""
    if isinstance(inputs, Mapping):
        refuse_lacking([column], [str(key) for key in inputs])
        return inputs[column]
    if isinstance(inputs, list | tuple) and inputs and isinstance(inputs[0], Mapping):
        for row in inputs:
            refuse_lacking([column], [str(key) for key in row] if isinstance(row, Mapping) else [])
        return [row[column] for row in inputs]
    names = getattr(inputs, "column_names", getattr(inputs, "columns", None))
    if names is None:
        return inputs
    refuse_lacking([column], [str(name) for name in names])
    return inputs[column]


def _refuse_numbers(inputs: Any, column: str) -> None:
    """Refuse scores where texts are read: they are given by name."""
    first = inputs
    while isinstance(first, list | tuple) and first:
        first = first[0]
    kind = getattr(getattr(first, "dtype", None), "kind", "") if hasattr(first, "dtype") else ""
    if isinstance(first, Number) or str(kind) in ("b", "i", "u", "f"):
        raise InputError(
            f"inputs must be texts (column {column!r} of a table), got numbers: give scores as "
            "logits= or probs=."
        )
