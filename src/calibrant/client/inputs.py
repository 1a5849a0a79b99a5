"""Conversion of texts, rows, logits and outcomes to JSON request bodies."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.errors import InputError

__all__ = ["check_idempotency_key", "encode_body", "encode_inputs", "encode_outcomes"]

_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,128}")
_OUTCOME_KEYS = ("prediction", "label", "other", "source", "outcome", "value", "text")


def encode_inputs(texts: Any, rows: Any, logits: Any) -> list[dict[str, Any]]:
    """Return the inputs of a request from exactly one of the three arguments.

    Examples
    --------
    >>> encode_inputs(None, [{"weight": 1.5, "fat": "low"}], None)
    [{'row': {'weight': 1.5, 'fat': 'low'}}]
    """
    arguments = {"texts": texts, "rows": rows, "logits": logits}
    names = [name for name, values in arguments.items() if values is not None]
    if len(names) != 1:
        got = " and ".join(names) or "none of them"
        raise InputError(f"give exactly one of texts, rows and logits, got {got}.")
    name = names[0]
    values = _to_list(arguments[name], name)
    convert = {"texts": _text, "rows": _row, "logits": _logits}[name]
    key = {"texts": "text", "rows": "row", "logits": "logits"}[name]
    return [{key: convert(value, f"{name}[{i}]")} for i, value in enumerate(values)]


def encode_outcomes(outcomes: Any) -> list[dict[str, Any]]:
    """Return labels and outcomes as JSON objects, without empty fields.

    Examples
    --------
    >>> encode_outcomes([{"prediction": "0199d0f2", "label": "defect", "source": None}])
    [{'prediction': '0199d0f2', 'label': 'defect'}]
    """
    converted = []
    for i, each in enumerate(_to_list(outcomes, "outcomes")):
        where = f"outcomes[{i}]"
        if not isinstance(each, Mapping):
            raise InputError(
                f"{where} must be a dictionary with 'prediction' and 'label' or 'outcome', got "
                f"{type(each).__name__}."
            )
        unknown = [key for key in each if key not in _OUTCOME_KEYS]
        if unknown:
            raise InputError(
                f"{where} has unknown key {unknown[0]!r}: remove it; known keys are "
                f"{', '.join(_OUTCOME_KEYS)}."
            )
        values = {key: _cell(value, f"{where}[{key!r}]") for key, value in each.items()}
        entry = {key: value for key, value in values.items() if value is not None}
        if "prediction" not in entry or not entry.keys() & {"label", "outcome"}:
            raise InputError(f"{where} needs 'prediction', and 'label', 'outcome' or both.")
        converted.append(entry)
    return converted


def check_idempotency_key(key: Any) -> str:
    """Return an idempotency key; refuse one that is not a valid header value."""
    if not isinstance(key, str) or not _IDEMPOTENCY_KEY.fullmatch(key):
        raise InputError(
            f"idempotency_key must be 1 to 128 visible ASCII characters, got {str(key)[:40]!r}."
        )
    return key


def encode_body(body: Mapping[str, Any]) -> bytes:
    """Encode a body as UTF-8 JSON; equal content gives equal bytes."""
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"a text contains an unpaired surrogate ({error.object[error.start]!r}) and cannot be "
            "sent: decode it with the right encoding."
        ) from None


def _to_list(values: Any, name: str) -> list[Any]:
    """Convert a sequence to a list; errors say how to convert other types."""
    if isinstance(values, str):
        raise InputError(f"{name} must be a list, got a string: write [{values[:40]!r}].")
    if isinstance(values, Mapping):
        raise InputError(f"{name} must be a list, got a dictionary: write [{{...}}].")
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        raise InputError(
            f"{name} must be a list of dictionaries, got a {type(values).__name__}: write "
            "table.to_dict('records')."
        )
    if hasattr(values, "to_pylist"):
        values = values.to_pylist()
    elif hasattr(values, "tolist"):
        values = values.tolist()
    if not isinstance(values, Sequence) or isinstance(values, bytes):
        raise InputError(f"{name} must be a list, got {type(values).__name__}.")
    if not len(values):
        raise InputError(f"{name} is empty: pass at least one.")
    return list(values)


def _text(value: Any, where: str) -> str:
    value = _to_python(value)
    if not isinstance(value, str):
        raise InputError(
            f"{where} must be a string, got {type(value).__name__}: use '' if it is missing."
        )
    return value


def _row(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where} must be a dictionary of columns, got {type(value).__name__}.")
    for name in value:
        if not isinstance(name, str):
            raise InputError(f"{where} has the column {name!r}: column names must be strings.")
    return {name: _cell(cell, f"{where}[{name!r}]") for name, cell in value.items()}


def _logits(value: Any, where: str) -> list[float] | dict[str, float]:
    value = _to_python(value)
    if isinstance(value, Mapping):
        return {str(name): _number(z, f"{where}[{name!r}]") for name, z in value.items()}
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise InputError(
            f"{where} must be a list with one logit per class, or a dictionary from class to "
            f"logit, got {type(value).__name__}."
        )
    return [_number(z, f"{where}[{k}]") for k, z in enumerate(value)]


def _number(value: Any, where: str) -> float:
    value = _to_python(value)
    try:
        number = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where} must be a finite number, got {repr(value)[:40]}.")
    return number


def _cell(value: Any, where: str) -> str | bool | int | float | None:
    """Convert a table cell; NaN means missing and becomes None."""
    value = _to_python(value)
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return None
        raise InputError(f"{where} is {value}: only finite numbers can be sent.")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise InputError(
        f"{where} must be a string, number, bool or None, got {type(value).__name__}: convert it."
    )


def _to_python(value: Any) -> Any:
    """Convert a numpy scalar or array to Python objects."""
    return value.tolist() if hasattr(value, "tolist") else value
