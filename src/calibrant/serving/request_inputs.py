"""Validation of inputs against the bundle, and collation into batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from calibrant.client.messages import Input
from calibrant.data.encoders.input_columns import format_names
from calibrant.data.redaction.redactor import redact
from calibrant.serving.bundle_slot import Served
from calibrant.serving.settings import InputPolicy

_MAX_NUMBER = 1e30  # Larger numbers and logits would overflow in a model


class InvalidInput(ValueError):
    """An input that the bundle cannot use; `where` is its location in the body."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(f"{where}: {message}.")
        self.where, self.message = where, message


def check_inputs(inputs: Sequence[Input], served: Served, *, max_text: int) -> list[Any]:
    """Convert inputs to the rows that `collate` takes; raise `InvalidInput` for the first bad one.

    Texts stay texts, rows become lists in the order of the bundle's columns, and logits become
    lists in the order of its classes.
    """
    check = {"text": _text, "table": _row, "logits": _logits}[served.reads]
    return [check(input, f"inputs[{i}]", served, max_text) for i, input in enumerate(inputs)]


def collate(rows: Iterable[Any], served: Served) -> Any:
    """Combine checked inputs into the argument of the bundle's `predict_logits`."""
    if served.reads == "text":
        return list(rows)
    if served.reads == "logits":
        return np.array(list(rows), dtype=np.float64)
    names, numbers = _columns(served)
    columns = {
        name: pa.array(values, pa.float64() if name in numbers else pa.large_string())
        for name, values in zip(names, zip(*rows, strict=True), strict=True)
    }
    scorer = served.bundle.scorer
    assert scorer is not None  # it takes tables
    return scorer.pick(pa.table(columns))


def apply_input_policy(input: Input, policy: InputPolicy) -> dict[str, Any] | None:
    """Return the stored form of an input, or None if only its hash is stored."""
    if policy == "hash":
        return None
    content = input.model_dump(exclude_none=True)
    if input.row is not None:
        content = {"row": input.row}  # including empty cells
    return content if policy == "keep" else _redact_values(content)


def _redact_values(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redact_values(cell) for key, cell in value.items()}
    if isinstance(value, int) and not isinstance(
        value, bool
    ):  # such as a card number without quotes
        text = str(value)
        return value if redact(text) == text else redact(text)
    return value


def _text(input: Input, where: str, served: Served, max_text: int) -> str:
    if input.text is None:
        raise InvalidInput(where, 'the bundle takes texts: send {"text": "…"}')
    if len(input.text) > max_text:
        raise InvalidInput(f"{where}.text", _too_long(input.text, max_text))
    return input.text


def _row(input: Input, where: str, served: Served, max_text: int) -> list[Any]:
    names, numbers = _columns(served)
    if input.row is None:
        raise InvalidInput(
            where, f'the bundle takes table rows: send {{"row": …}} with {format_names(names)}'
        )
    where = f"{where}.row"
    missing = [name for name in names if name not in input.row]
    if missing:
        raise InvalidInput(where, f"column {missing[0]!r} is missing (send null if unknown)")
    if len(input.row) > len(names):
        unknown = next(name for name in input.row if name not in names)
        raise InvalidInput(
            where, f"unknown column {unknown[:100]!r}: the bundle takes {format_names(names)}"
        )
    return [
        (_number if name in numbers else _category)(input.row[name], f"{where}.{name}", max_text)
        for name in names
    ]


def _number(value: Any, where: str, max_text: int) -> float | None:
    if isinstance(value, str):
        raise InvalidInput(where, f"must be a number or null, got the text {value[:40]!r}")
    if value is not None and not -_MAX_NUMBER <= value <= _MAX_NUMBER:
        raise InvalidInput(where, "the number is too large")
    return None if value is None else float(value)


def _category(value: Any, where: str, max_text: int) -> str | None:
    if isinstance(value, bool | float):
        raise InvalidInput(where, f"must be a text or null, got {str(value).lower()}")
    if value is not None and len(str(value)) > max_text:
        raise InvalidInput(where, _too_long(str(value), max_text))
    return None if value is None else str(value)


def _logits(input: Input, where: str, served: Served, max_text: int) -> list[float]:
    if input.logits is None:
        raise InvalidInput(where, 'the bundle has no model: send {"logits": …}, one for each class')
    where = f"{where}.logits"
    if isinstance(input.logits, dict):
        missing = [name for name in served.classes if name not in input.logits]
        if missing:
            raise InvalidInput(where, f"class {missing[0]!r} is missing")
        if len(input.logits) > len(served.classes):
            unknown = next(name for name in input.logits if name not in served.classes)
            raise InvalidInput(
                where,
                f"{unknown[:100]!r} is not a class: the classes are {format_names(served.classes)}",
            )
        return _check_range([input.logits[name] for name in served.classes], where)
    if len(input.logits) != len(served.classes):
        raise InvalidInput(
            where,
            f"{len(served.classes)} logits are required, one for each of "
            f"{format_names(served.classes)}, got {len(input.logits)}",
        )
    return _check_range(input.logits, where)


def _check_range(logits: list[float], where: str) -> list[float]:
    if max(logits) > _MAX_NUMBER or min(logits) < -_MAX_NUMBER:
        raise InvalidInput(where, "a logit is too large")
    return logits


def _columns(served: Served) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the columns in the order of the model, and the numeric ones."""
    scorer = served.bundle.scorer
    assert scorer is not None  # it takes tables
    names = tuple(each.name for each in scorer.encoder.columns_)  # type: ignore[union-attr]
    return names, frozenset(scorer.columns.numbers)


def _too_long(text: str, limit: int) -> str:
    return f"the text has {len(text):,} characters, at most {limit:,} are allowed"
