"""What a visitor typed on the Try it page, checked as a request to `/v1/predict` would be."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from calibrant.client.messages import Input
from calibrant.formatting import quoted, sentence
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.predictions.wording import visible
from calibrant.serving.console.pages.try_it.fields import MOST_FIELDS, Field, fields_of
from calibrant.serving.console.pages.try_it.paste import pasted
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.http.problems import validation_problem
from calibrant.serving.request_inputs import InvalidInput, check_inputs

__all__ = ["PASTE", "Typed", "read_typed"]

PASTE = "paste"
"""The field that takes a whole row."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SHOWN = 40


@dataclass(frozen=True)
class Typed:
    """What was typed, and what is wrong with it.

    Parameters
    ----------
    values : by the keys of fields, as it is shown again
    faults : by the keys of fields the sentence beside each
    input, row : what is scored: as a request has it, and as the model takes it; None where there
        are faults
    notes : what a reader of the result should know about the input
    """

    values: Mapping[str, str]
    faults: Mapping[str, str] = field(default_factory=dict)
    input: Input | None = None
    row: Any = None
    notes: tuple[str, ...] = ()


def read_typed(form: Form, served: Served, *, max_text: int) -> Typed:
    """Read the fields of a form; every fault is told beside its field."""
    fields = fields_of(served)
    paste = form.raw(PASTE)
    values = {each.key: form.raw(each.key) for each in fields}
    if paste.strip() and served.reads != "text":
        try:
            found = pasted(paste, [each.name for each in fields])
        except ValueError as fault:
            return Typed({**values, PASTE: paste}, {PASTE: sentence(str(fault))})
        values = dict(zip(values, found, strict=True))
    faults = {each.key: said for each in fields if (said := _fault(each, values[each.key]))}
    if not faults and not any(value.strip() for value in values.values()):
        faults = {fields[0].key: "Fill in at least one field."}
    shown = {**values, PASTE: paste}
    if faults:
        return Typed(shown, _beside(faults, fields))
    return _checked(shown, fields, served, max_text)


def _checked(
    values: Mapping[str, str], fields: Sequence[Field], served: Served, max_text: int
) -> Typed:
    """Check an input with the code that checks requests."""
    try:
        given = _input(values, fields)
        row = check_inputs([given], served, max_text=max_text)[0]
    except ValidationError as error:
        told = validation_problem(error).errors[0]
        where, said = told["where"], told["message"]
    except InvalidInput as fault:
        where, said = fault.where.removeprefix("inputs[0]."), fault.message
    else:
        return Typed(values, input=given, row=row, notes=tuple(_notes(values, fields)))
    named = [each.key for each in fields if where == f"row.{each.name}"]
    return Typed(values, _beside({(named or [fields[0].key])[0]: sentence(said)}, fields))


def _input(values: Mapping[str, str], fields: Sequence[Field]) -> Input:
    kind = fields[0].kind
    if kind == "text":
        return Input.model_validate({"text": values[fields[0].key]})
    found = [(each.name, _value(each, values[each.key])) for each in fields]
    if kind == "logit":
        return Input.model_validate({"logits": [value for _, value in found]})
    return Input.model_validate({"row": dict(found)})


def _value(each: Field, typed: str) -> str | float | None:
    text = typed.strip()
    if each.kind == "category":
        return text or None
    return float(text) if text else None


def _fault(each: Field, typed: str) -> str | None:
    """Say what is wrong with the value of one field; None where nothing is."""
    text = typed.strip()
    if each.kind == "text":
        return None if text else "Write or paste a message: this one is empty."
    if each.kind == "category":
        return _unknown(each, text)
    if not text:
        return "A number is needed: the logit of this class." if each.kind == "logit" else None
    if _NUMBER.fullmatch(text) is None:
        comma = ": write it with a point, like 2.5" if "," in text else ""
        return f"{_quoted(text)} is not a number{comma}."
    return None if math.isfinite(float(text)) else f"{_quoted(text)} is too large a number."


def _unknown(each: Field, text: str) -> str | None:
    """Say that a category is none that the model knows; rare ones are pooled and not listed."""
    column = each.column
    key = None if column is None or not text else column.rules.key(text)
    if column is None or key is None or column.other:
        return None
    if key in {column.rules.fold(known) for known in column.categories}:
        return None
    some = ", ".join(quoted(known) for known in column.categories[:8])
    more = f" and {len(column.categories) - 8} more" if len(column.categories) > 8 else ""
    return (
        f"{_quoted(text)} is not among the categories that the model knows: {some}{more}. Choose "
        "one, or leave the field empty where nothing is known."
    )


def _notes(values: Mapping[str, str], fields: Sequence[Field]) -> list[str]:
    """Say which categories are read as one of the rare ones."""
    found = []
    for each in fields:
        text = values[each.key].strip()
        if each.column is None or not each.pools or not text:
            continue
        rules = each.column.rules
        if rules.key(text) not in {None, *map(rules.fold, each.column.categories)}:
            found.append(
                f"{_quoted(text)} of {quoted(each.label)} is read as one of the rare categories, "
                "which the model takes together."
            )
    return found


def _beside(faults: Mapping[str, str], fields: Sequence[Field]) -> dict[str, str]:
    """Put faults beside their fields; where only a whole row can be pasted, beside that."""
    if len(fields) <= MOST_FIELDS:
        return dict(faults)
    labels = {each.key: each.label for each in fields}
    key, said = next(iter(faults.items()))
    others = len(faults) - 1
    are = "value is" if others == 1 else "values are"
    more = f" {others:,} more {are} wrong." if others else ""
    return {PASTE: f"{labels[key]}: {said}{more}"}


def _quoted(text: str) -> str:
    return quoted(visible(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"))
