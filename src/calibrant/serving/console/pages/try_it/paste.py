"""A whole row in one text: as JSON, or as values in the order of the columns."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.data.encoders.input_columns import format_names
from calibrant.serving.console.pages.predictions.wording import visible

__all__ = ["pasted"]

_MANY = "several rows were pasted: paste one of them, with or without a line of names above it"


def pasted(text: str, names: Sequence[str]) -> list[str]:
    r"""Return the value of each name, empty where there is none; ValueError says what is wrong.

    A row is a JSON object by names or a list in their order; or values that tabs, semicolons or
    commas part, in the order of the names, under a line of names in any order, or one on each line.

    Examples
    --------
    >>> pasted('{"shelf": "top", "price": 2.5}', ["price", "shelf"])
    ['2.5', 'top']
    >>> pasted("shelf\tprice\ntop\t2.5", ["price", "shelf"])
    ['2.5', 'top']
    >>> pasted("2.5", ["price", "shelf"])
    Traceback (most recent call last):
    ...
    ValueError: 2 values are needed, for 'price', 'shelf', got 1
    """
    if text.lstrip().startswith(("{", "[")):
        return _of_json(text, names)
    lines = [line for line in text.splitlines() if line.strip()]
    mark = next((sign for sign in "\t;" if sign in text), ",")
    try:
        read = csv.reader(lines, delimiter=mark, skipinitialspace=True)
        rows = [[part.strip() for part in row] for row in read]
    except csv.Error:
        raise ValueError("the row cannot be read: paste it as JSON, or with tabs") from None
    if len(rows) == len(names) > 1 and all(len(row) == 1 for row in rows):
        return [row[0] for row in rows]
    if len(rows) == 2 and set(rows[0]) & set(names):
        return _by_name(dict(zip(*rows, strict=False)), names)
    if len(rows) != 1:
        raise ValueError(_MANY)
    return _in_order(rows[0], names)


def _of_json(text: str, names: Sequence[str]) -> list[str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(
            "this begins like JSON but is none: check its quotation marks and commas"
        ) from None
    for part in ("inputs", "row", "logits"):  # as requests for predictions have them
        if isinstance(found, dict) and list(found) == [part] and part not in names:
            found = found[part]
        if part == "inputs" and isinstance(found, list) and any(isinstance(i, dict) for i in found):
            if len(found) > 1:
                raise ValueError(_MANY)
            found = found[0]
    if isinstance(found, dict):
        return _by_name({name: _written(value) for name, value in found.items()}, names)
    if not isinstance(found, list):
        raise ValueError("a JSON object with the names of the columns is needed, or a list")
    return _in_order([_written(value) for value in found], names)


def _by_name(found: Mapping[str, str], names: Sequence[str]) -> list[str]:
    unknown = [name for name in found if name not in names]
    if unknown:
        raise ValueError(
            f"there is no {visible(unknown[0][:100])!r}: there are {format_names(names)}"
        )
    return [found.get(name, "") for name in names]


def _in_order(values: list[str], names: Sequence[str]) -> list[str]:
    if len(values) != len(names):
        raise ValueError(
            f"{len(names)} values are needed, for {format_names(names)}, got {len(values)}"
        )
    return values


def _written(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
