"""What a client sends: texts, rows and logits as plain JSON, refused here where they cannot be."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.errors import InputError

__all__ = ["as_inputs", "as_outcomes", "checked_idempotency_key", "encoded"]

_TOKEN = re.compile(r"[\x21-\x7e]{1,128}")
_OUTCOME = ("prediction", "label", "other", "source", "outcome", "value", "text")


def as_inputs(texts: Any, rows: Any, logits: Any) -> list[dict[str, Any]]:
    """Return the inputs of a request; exactly one of the three is given.

    Examples
    --------
    >>> as_inputs(None, [{"weight": 1.5, "fat": "low"}], None)
    [{'row': {'weight': 1.5, 'fat': 'low'}}]
    """
    given = {"texts": texts, "rows": rows, "logits": logits}
    there = [name for name, values in given.items() if values is not None]
    if len(there) != 1:
        got = " and ".join(there) or "none of them"
        raise InputError(f"give exactly one of texts, rows and logits, got {got}.")
    name = there[0]
    values = _listed(given[name], name)
    one = {"texts": _text, "rows": _row, "logits": _logits}[name]
    key = {"texts": "text", "rows": "row", "logits": "logits"}[name]
    return [{key: one(value, f"{name}[{i}]")} for i, value in enumerate(values)]


def as_outcomes(outcomes: Any) -> list[dict[str, Any]]:
    """Return labels and outcomes as they are sent.

    Examples
    --------
    >>> as_outcomes([{"prediction": "0199d0f2", "label": "defect", "source": None}])
    [{'prediction': '0199d0f2', 'label': 'defect'}]
    """
    found = []
    for i, each in enumerate(_listed(outcomes, "outcomes")):
        where = f"outcomes[{i}]"
        if not isinstance(each, Mapping):
            raise InputError(
                f"{where} must be a dictionary with 'prediction' and 'label' or 'outcome', got "
                f"{type(each).__name__}."
            )
        unknown = [key for key in each if key not in _OUTCOME]
        if unknown:
            raise InputError(
                f"{where} has {unknown[0]!r}, which is none of {', '.join(_OUTCOME)}: leave it out."
            )
        told = {key: _cell(value, f"{where}[{key!r}]") for key, value in each.items()}
        said = {key: value for key, value in told.items() if value is not None}
        if "prediction" not in said or not said.keys() & {"label", "outcome"}:
            raise InputError(f"{where} needs 'prediction', and 'label' or 'outcome' or both.")
        found.append(said)
    return found


def checked_idempotency_key(key: Any) -> str:
    """Return a key that names a request; refuse what does not fit into a header."""
    if not isinstance(key, str) or not _TOKEN.fullmatch(key):
        raise InputError(
            f"idempotency_key must be 1 to 128 visible ASCII characters, got {str(key)[:40]!r}."
        )
    return key


def encoded(body: Mapping[str, Any]) -> bytes:
    """Return a body as JSON in UTF-8, the same bytes for the same content."""
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"a text holds half a character ({error.object[error.start]!r}), which cannot be sent: "
            "read it again with the right encoding."
        ) from None


def _listed(values: Any, name: str) -> list[Any]:
    """Return a list, or say how to make one of what came."""
    if isinstance(values, str):
        raise InputError(f"{name} must be a list, got a text: write [{values[:40]!r}].")
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
        raise InputError(f"{name} is empty: at least one is needed.")
    return list(values)


def _text(value: Any, where: str) -> str:
    value = _plain(value)
    if not isinstance(value, str):
        raise InputError(
            f"{where} must be a text, got {type(value).__name__}: write '' where there is none."
        )
    return value


def _row(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where} must be a dictionary of columns, got {type(value).__name__}.")
    for name in value:
        if not isinstance(name, str):
            raise InputError(f"{where} has the column {name!r}: names of columns must be text.")
    return {name: _cell(cell, f"{where}[{name!r}]") for name, cell in value.items()}


def _logits(value: Any, where: str) -> list[float] | dict[str, float]:
    value = _plain(value)
    if isinstance(value, Mapping):
        return {str(name): _number(z, f"{where}[{name!r}]") for name, z in value.items()}
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise InputError(
            f"{where} must be a list with a logit for each class, or a dictionary from classes to "
            f"logits, got {type(value).__name__}."
        )
    return [_number(z, f"{where}[{k}]") for k, z in enumerate(value)]


def _number(value: Any, where: str) -> float:
    value = _plain(value)
    try:
        found = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise InputError(f"{where} must be a finite number, got {repr(value)[:40]}.")
    return found


def _cell(value: Any, where: str) -> str | bool | int | float | None:
    """Return a value of a table; NaN, which stands for a missing one there, is null."""
    value = _plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return None
        raise InputError(f"{where} is {value}: only finite numbers can be sent.")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise InputError(
        f"{where} must be a text, a number, true, false or None, got {type(value).__name__}: turn "
        "it into one of them."
    )


def _plain(value: Any) -> Any:
    """Turn a scalar or an array of numpy into plain Python."""
    return value.tolist() if hasattr(value, "tolist") else value
