"""What a running model is given: a column of texts, a table with the columns it knows, images."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import Any

from calibrant.data.encoders.category_column import CategoryColumn
from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.data.encoders.input_columns import InputColumns, format_names, require_columns
from calibrant.data.encoders.ngram_encoder import NgramEncoder
from calibrant.data.encoders.subword_encoder import SubwordEncoder
from calibrant.data.encoders.table_columns import as_table
from calibrant.data.encoders.table_encoder import TableEncoder, is_plain
from calibrant.data.encoders.text_encoder import TextEncoder, as_text_column
from calibrant.errors import InputError

TextReader = TextEncoder | SubwordEncoder | NgramEncoder
Encoder = TextReader | TableEncoder | ImageEncoder


def kind_of(encoder: Any) -> str:
    """Return the kind of input of an encoder: "text", "table" or "image".

    Examples
    --------
    >>> kind_of(TextEncoder())
    'text'
    """
    if isinstance(encoder, TextReader):
        return "text"
    if isinstance(encoder, TableEncoder):
        return "table"
    if isinstance(encoder, ImageEncoder):
        return "image"
    raise InputError(
        "encoder must be a fitted TextEncoder, SubwordEncoder, NgramEncoder, TableEncoder or "
        f"ImageEncoder, got {encoder!r}."
    )


def columns_of(encoder: Encoder, column: str | None) -> InputColumns:
    """Return the columns that an encoder reads; images stand in no table."""
    if isinstance(encoder, TextReader):
        return InputColumns(texts=(str(column),))
    if isinstance(encoder, ImageEncoder):
        return InputColumns()
    names: dict[str, list[str]] = {"numbers": [], "texts": [], "formatted": []}
    for each in encoder.columns_:
        kind = "texts" if isinstance(each, CategoryColumn) else "numbers"
        names[kind if is_plain(each) else "formatted"].append(each.name)
    return InputColumns(**{kind: tuple(listed) for kind, listed in names.items()})


def as_inputs(inputs: Any, encoder: Encoder, column: str | None) -> Any:
    """Return texts as an Arrow column, a table as columns, images as bytes (n, H, W, C)."""
    if isinstance(encoder, TextReader):
        _refuse_numbers(inputs, str(column))
        return as_text_column(_text_column(inputs, str(column)), name="inputs")
    if isinstance(encoder, ImageEncoder):
        _refuse_no_images(inputs, encoder)
        return encoder.check_images(inputs, name="inputs")
    if isinstance(inputs, list | tuple) and inputs and isinstance(inputs[0], str):
        raise InputError(
            "inputs must be a table, got a list of texts: give a DataFrame, a dict of columns or a "
            f"list of dicts with {format_names(columns_of(encoder, column).names)}."
        )
    rows = as_table(inputs, name="inputs", wanted=encoder.wants)
    if encoder.named_ and rows.named:
        require_columns([each.name for each in encoder.columns_], rows.names)
    return encoder.match(rows, name="inputs")


def _text_column(inputs: Any, column: str) -> Any:
    """Take the column of texts out of a table; anything else is taken as that column."""
    if isinstance(inputs, Mapping):
        require_columns([column], [str(key) for key in inputs])
        return inputs[column]
    if isinstance(inputs, list | tuple) and inputs and isinstance(inputs[0], Mapping):
        for row in inputs:
            require_columns([column], [str(key) for key in row] if isinstance(row, Mapping) else [])
        return [row[column] for row in inputs]
    names = getattr(inputs, "column_names", getattr(inputs, "columns", None))
    if names is None:
        return inputs
    require_columns([column], [str(name) for name in names])
    return inputs[column]


def _refuse_numbers(inputs: Any, column: str) -> None:
    """Refuse scores where texts are read: they are given by name."""
    if _is_number(_nested(inputs)[0]):
        raise InputError(
            f"inputs must be texts (column {column!r} of a table), got numbers: give scores as "
            "logits= or probs=."
        )


def _refuse_no_images(inputs: Any, encoder: ImageEncoder) -> None:
    """Refuse tables and scores where images are read, and an image that is not in a list."""
    height, width = encoder.size_
    wanted = f"inputs must be images, an array (n, {height}, {width}, {encoder.channels_}) of bytes"
    first, depth = _nested(inputs)
    if isinstance(first, Mapping) or hasattr(first, "column_names") or hasattr(first, "columns"):
        raise InputError(f"{wanted}, got a table: give the images themselves.")
    if not _is_number(first) or depth > 2:
        return
    if getattr(inputs, "shape", ()) == encoder.size_:
        raise InputError(f"{wanted}, got a single one: put it into a list.")
    raise InputError(f"{wanted}, got rows of numbers: give scores as logits= or probs=.")


def _nested(inputs: Any) -> tuple[Any, int]:
    """Return what stands first within lists, and how many dimensions lists and array have."""
    depth, first = 0, inputs
    while isinstance(first, list | tuple) and first:
        depth, first = depth + 1, first[0]
    return first, depth + len(getattr(first, "shape", ()))


def _is_number(first: Any) -> bool:
    if hasattr(first, "detach"):  # a tensor
        return True
    kind = getattr(getattr(first, "dtype", None), "kind", "") if hasattr(first, "dtype") else ""
    return isinstance(first, Number) or str(kind) in ("b", "i", "u", "f")
