"""Parse a whole row from JSON or delimited text."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.data.encoders.input_columns import format_names
from calibrant.serving.console.pages.predictions.wording import make_visible

__all__ = ["parse_row"]

_SEVERAL_ROWS = "several rows were pasted: paste only one, with or without a header line"


def parse_row(text: str, names: Sequence[str]) -> list[str]:
    r"""Return the value of each name, empty if missing; raise ValueError for an invalid row.

    A row is a JSON object by name or a list in order; or values separated by tabs, semicolons or
    commas, in order, below a header line in any order, or one per line.

    Examples
    --------
    >>> parse_row('{"shelf": "top", "price": 2.5}', ["price", "shelf"])
    ['2.5', 'top']
    >>> parse_row("shelf\tprice\ntop\t2.5", ["price", "shelf"])
    ['2.5', 'top']
    >>> parse_row("2.5", ["price", "shelf"])
    Traceback (most recent call last):
    ...
    ValueError: expected 2 values, for 'price', 'shelf', got 1
    """
    if text.lstrip().startswith(("{", "[")):
        return _parse_json(text, names)
    lines = [line for line in text.splitlines() if line.strip()]
    delimiter = next((sign for sign in "\t;" if sign in text), ",")
    try:
        reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
        rows = [[part.strip() for part in row] for row in reader]
    except csv.Error:
        raise ValueError("the row cannot be read: paste it as JSON or tab-separated") from None
    if len(rows) == len(names) > 1 and all(len(row) == 1 for row in rows):
        return [row[0] for row in rows]
    if len(rows) == 2 and set(rows[0]) & set(names):
        return _order_by_name(dict(zip(*rows, strict=False)), names)
    if len(rows) != 1:
        raise ValueError(_SEVERAL_ROWS)
    return _check_count(rows[0], names)


def _parse_json(text: str, names: Sequence[str]) -> list[str]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(
            "this looks like JSON but is not valid: check its quotation marks and commas"
        ) from None
    for part in ("inputs", "row", "logits"):  # as in requests for predictions
        if isinstance(content, dict) and list(content) == [part] and part not in names:
            content = content[part]
        if (
            part == "inputs"
            and isinstance(content, list)
            and any(isinstance(i, dict) for i in content)
        ):
            if len(content) > 1:
                raise ValueError(_SEVERAL_ROWS)
            content = content[0]
    if isinstance(content, dict):
        return _order_by_name({name: _to_text(value) for name, value in content.items()}, names)
    if not isinstance(content, list):
        raise ValueError("expected a JSON object by column name, or a list")
    return _check_count([_to_text(value) for value in content], names)


def _order_by_name(values: Mapping[str, str], names: Sequence[str]) -> list[str]:
    unknown = [name for name in values if name not in names]
    if unknown:
        raise ValueError(
            f"unknown name {make_visible(unknown[0][:100])!r}: expected {format_names(names)}"
        )
    return [values.get(name, "") for name in names]


def _check_count(values: list[str], names: Sequence[str]) -> list[str]:
    if len(values) != len(names):
        raise ValueError(
            f"expected {len(names)} values, for {format_names(names)}, got {len(values)}"
        )
    return values


def _to_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
