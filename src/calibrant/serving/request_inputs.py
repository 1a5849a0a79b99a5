"""Inputs of requests as the bundle reads them: checked one by one, then put together in batches."""

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

__all__ = ["Faulty", "checked_inputs", "joined", "kept"]


_LARGEST = 1e30
"""Numbers and logits beyond it would overflow on their way through a model."""


class Faulty(ValueError):
    """An input that the bundle cannot read.

    Parameters
    ----------
    where : the place in the body
    message : what is wrong there
    """

    def __init__(self, where: str, message: str) -> None:
        super().__init__(f"{where}: {message}.")
        self.where, self.message = where, message


def checked_inputs(inputs: Sequence[Input], served: Served, *, max_text: int) -> list[Any]:
    """Return for each input what `joined` takes; raise `Faulty` for the first that does not fit.

    Texts stay texts, rows become lists in the order of the bundle's columns, and logits lists in
    the order of its classes.
    """
    check = {"text": _text, "table": _row, "logits": _logits}[served.reads]
    return [check(given, f"inputs[{i}]", served, max_text) for i, given in enumerate(inputs)]


def joined(rows: Iterable[Any], served: Served) -> Any:
    """Put checked inputs together as the bundle's `predict_logits` takes them."""
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
    assert scorer is not None  # it reads tables
    return scorer.pick(pa.table(columns))


def kept(given: Input, policy: InputPolicy) -> dict[str, Any] | None:
    """Return what goes on record of an input: None where only its hash does."""
    if policy == "hash":
        return None
    content = given.model_dump(exclude_none=True)
    if given.row is not None:
        content = {"row": given.row}  # with its empty cells
    return content if policy == "keep" else _redacted(content)


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redacted(each) for key, each in value.items()}
    if isinstance(value, int) and not isinstance(value, bool):  # a card's number needs no quotes
        words = str(value)
        return value if redact(words) == words else redact(words)
    return value


def _text(given: Input, where: str, served: Served, max_text: int) -> str:
    if given.text is None:
        raise Faulty(where, 'the bundle reads texts: give {"text": "…"}')
    if len(given.text) > max_text:
        raise Faulty(f"{where}.text", _too_long(given.text, max_text))
    return given.text


def _row(given: Input, where: str, served: Served, max_text: int) -> list[Any]:
    names, numbers = _columns(served)
    if given.row is None:
        raise Faulty(
            where, f'the bundle reads rows of a table: give {{"row": …}} with {format_names(names)}'
        )
    where = f"{where}.row"
    lacking = [name for name in names if name not in given.row]
    if lacking:
        raise Faulty(where, f"the column {lacking[0]!r} is lacking (null where nothing is known)")
    if len(given.row) > len(names):
        unknown = next(name for name in given.row if name not in names)
        raise Faulty(
            where, f"the bundle reads no column {unknown[:100]!r}: it reads {format_names(names)}"
        )
    return [
        (_number if name in numbers else _category)(given.row[name], f"{where}.{name}", max_text)
        for name in names
    ]


def _number(value: Any, where: str, max_text: int) -> float | None:
    if isinstance(value, str):
        raise Faulty(where, f"a number or null is needed, got the text {value[:40]!r}")
    if value is not None and not -_LARGEST <= value <= _LARGEST:
        raise Faulty(where, "the number is too large")
    return None if value is None else float(value)


def _category(value: Any, where: str, max_text: int) -> str | None:
    if isinstance(value, bool | float):
        raise Faulty(where, f"a text or null is needed, got {str(value).lower()}")
    if value is not None and len(str(value)) > max_text:
        raise Faulty(where, _too_long(str(value), max_text))
    return None if value is None else str(value)


def _logits(given: Input, where: str, served: Served, max_text: int) -> list[float]:
    if given.logits is None:
        raise Faulty(where, 'the bundle has no model: give {"logits": …}, one for each class')
    where = f"{where}.logits"
    if isinstance(given.logits, dict):
        lacking = [name for name in served.classes if name not in given.logits]
        if lacking:
            raise Faulty(where, f"the class {lacking[0]!r} is lacking")
        if len(given.logits) > len(served.classes):
            unknown = next(name for name in given.logits if name not in served.classes)
            raise Faulty(
                where, f"{unknown[:100]!r} is not a class: there are {format_names(served.classes)}"
            )
        return _bounded([given.logits[name] for name in served.classes], where)
    if len(given.logits) != len(served.classes):
        raise Faulty(
            where,
            f"{len(served.classes)} logits are needed, one for each of "
            f"{format_names(served.classes)}, got {len(given.logits)}",
        )
    return _bounded(given.logits, where)


def _bounded(logits: list[float], where: str) -> list[float]:
    if max(logits) > _LARGEST or min(logits) < -_LARGEST:
        raise Faulty(where, "a logit is too large")
    return logits


def _columns(served: Served) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the columns in the order in which the model has them, and those of numbers."""
    scorer = served.bundle.scorer
    assert scorer is not None  # it reads tables
    names = tuple(each.name for each in scorer.encoder.columns_)  # type: ignore[union-attr]
    return names, frozenset(scorer.columns.numbers)


def _too_long(text: str, limit: int) -> str:
    return f"the text has {len(text):,} characters, at most {limit:,} are taken"
