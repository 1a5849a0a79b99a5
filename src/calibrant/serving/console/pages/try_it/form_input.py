"""Input of the Try it page, validated like a request to `/v1/predict`."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from calibrant.client.messages import Input
from calibrant.data.encoders.input_columns import format_names
from calibrant.data.encoders.number_format import PLAIN
from calibrant.data.encoders.table_columns import Format
from calibrant.formatting import quote_name, sentence
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.predictions.wording import make_visible
from calibrant.serving.console.pages.try_it.fields import MAX_FIELDS, Field, list_fields
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.http.problems import validation_problem
from calibrant.serving.scoring import InvalidInput, check_inputs

_SEVERAL_ROWS = "several rows were pasted: paste only one, with or without a header line"


def parse_row(text: str, names: Sequence[str]) -> list[str]:
    r"""Return the value of each name, empty if missing; raise ValueError for an invalid row.

    A row is a JSON object by name or a list in order; or values separated by tabs, semicolons or
    commas, in order, below a header line in any order, or one per line.
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


PASTE = "paste"  # Field for a whole pasted row
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_MAX_QUOTED = 40


@dataclass(frozen=True)
class TryInput:
    """Input as typed, with its faults."""

    values: Mapping[str, str]  # typed text by field
    faults: Mapping[str, str] = field(default_factory=dict)  # error message by field
    input: Input | None = None  # as in a request; None if there are faults
    row: Any = None  # as the model takes it; None if there are faults
    notes: tuple[str, ...] = ()  # remarks on the input for readers of the result


def read_input(form: Form, served: Served, *, max_text: int) -> TryInput:
    """Parse the fields of a form; faults are returned by field."""
    fields = list_fields(served)
    paste = form.raw(PASTE)
    values = {each.key: form.raw(each.key) for each in fields}
    if paste.strip() and served.reads != "text":
        try:
            parsed = parse_row(paste, [each.name for each in fields])
        except ValueError as fault:
            return TryInput({**values, PASTE: paste}, {PASTE: sentence(str(fault))})
        values = dict(zip(values, parsed, strict=True))
    faults = {
        each.key: message for each in fields if (message := _field_fault(each, values[each.key]))
    }
    if not faults and not any(value.strip() for value in values.values()):
        faults = {fields[0].key: "Fill in at least one field."}
    shown = {**values, PASTE: paste}
    if faults:
        return TryInput(shown, _place_faults(faults, fields))
    return _validate(shown, fields, served, max_text)


def _validate(
    values: Mapping[str, str], fields: Sequence[Field], served: Served, max_text: int
) -> TryInput:
    """Validate an input with the code that validates requests."""
    try:
        input = _build_input(values, fields)
        row = check_inputs([input], served, max_text=max_text)[0]
    except ValidationError as error:
        detail = validation_problem(error).errors[0]
        where, message = detail["where"], detail["message"]
    except InvalidInput as fault:
        where, message = fault.where.removeprefix("inputs[0]."), fault.message
    else:
        return TryInput(values, input=input, row=row, notes=tuple(_notes(values, fields)))
    matches = [each.key for each in fields if where == f"row.{each.name}"]
    return TryInput(
        values, _place_faults({(matches or [fields[0].key])[0]: sentence(message)}, fields)
    )


def _build_input(values: Mapping[str, str], fields: Sequence[Field]) -> Input:
    kind = fields[0].kind
    if kind == "text":
        return Input.model_validate({"text": values[fields[0].key]})
    pairs = [(each.name, _parse_value(each, values[each.key])) for each in fields]
    if kind == "logit":
        return Input.model_validate({"logits": [value for _, value in pairs]})
    return Input.model_validate({"row": dict(pairs)})


def _parse_value(each: Field, typed: str) -> str | float | None:
    text = typed.strip()
    if each.kind == "category" or each.format not in (None, PLAIN):
        return text or None  # as typed; a format is read as in requests
    if each.format is not None:
        number = float(each.format.read(pa.array([text]))[0][0])
        return None if math.isnan(number) else number
    return float(text) if text else None


def _field_fault(each: Field, typed: str) -> str | None:
    """Return what is wrong with the value of a field, or None."""
    text = typed.strip()
    if each.kind == "text":
        return None if text else "Enter a message: this one is empty."
    if each.kind == "category":
        return _unknown_category(each, text)
    if each.format is not None:
        return _unreadable_value(each, each.format, text)
    if not text:
        return "Enter a number: the logit of this class."
    if _NUMBER.fullmatch(text) is None:
        comma = ": use a decimal point, as in 2.5" if "," in text else ""
        return f"{_quoted(text)} is not a number{comma}."
    return None if math.isfinite(float(text)) else f"{_quoted(text)} is too large."


def _unreadable_value(each: Field, format: Format, text: str) -> str | None:
    """Report a text that is not a number or date as in the train rows."""
    if not len(format.read(pa.array([text]))[1]):
        return None
    if format == PLAIN:
        if _NUMBER.fullmatch(text):
            return f"{_quoted(text)} is too large."
        comma = ": use a decimal point, as in 2.5" if "," in text else ""
        return f"{_quoted(text)} is not a number{comma}."
    return f"{_quoted(text)} is not a {each.kind} like {format.example}."


def _unknown_category(each: Field, text: str) -> str | None:
    """Report an unknown category; rare ones are pooled and not listed."""
    column = each.column
    key = None if column is None or not text else column.rules.key(text)
    if column is None or key is None or column.other:
        return None
    if key in {column.rules.fold(known) for known in column.categories}:
        return None
    some = ", ".join(quote_name(known) for known in column.categories[:8])
    more = f" and {len(column.categories) - 8} more" if len(column.categories) > 8 else ""
    return (
        f"{_quoted(text)} is not a known category. Known: {some}{more}. Choose one, or leave the "
        "field empty if the value is unknown."
    )


def _notes(values: Mapping[str, str], fields: Sequence[Field]) -> list[str]:
    """Note which categories are read as rare ones."""
    notes = []
    for each in fields:
        text = values[each.key].strip()
        if each.column is None or not each.pools or not text:
            continue
        rules = each.column.rules
        if rules.key(text) not in {None, *map(rules.fold, each.column.categories)}:
            notes.append(
                f"{_quoted(text)} in {quote_name(each.label)} counts as a rare category; the model "
                "pools those."
            )
    return notes


def _place_faults(faults: Mapping[str, str], fields: Sequence[Field]) -> dict[str, str]:
    """Assign faults to fields, or all to the paste field if there are too many fields."""
    if len(fields) <= MAX_FIELDS:
        return dict(faults)
    labels = {each.key: each.label for each in fields}
    key, message = next(iter(faults.items()))
    others = len(faults) - 1
    are = "value is" if others == 1 else "values are"
    more = f" {others:,} more {are} invalid." if others else ""
    return {PASTE: f"{labels[key]}: {message}{more}"}


def _quoted(text: str) -> str:
    return quote_name(make_visible(text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…"))
