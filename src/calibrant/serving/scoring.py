"""Score the inputs of several requests with one model call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from calibrant.bundle import Bundle
from calibrant.bundle.decision_scores import DecisionScore, score_decisions
from calibrant.bundle.reasons import list_reasons
from calibrant.bundle.scope import flag_rows
from calibrant.bundle.scores import ModelScores
from calibrant.client.messages import Input
from calibrant.data.encoders.category_column import CategoryColumn
from calibrant.data.encoders.date_column import DateColumn
from calibrant.data.encoders.input_columns import format_names
from calibrant.data.encoders.number_column import NumberColumn
from calibrant.data.encoders.table_features import EncodedColumn
from calibrant.data.explanation import Reason, RowExplanation
from calibrant.data.redaction.redactor import redact
from calibrant.inputs import FloatArray
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
    return {
        column.name: _as_values(column, values)
        for column, values in zip(_columns(served), zip(*rows, strict=True), strict=True)
    }


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
    columns = _columns(served)
    names = [column.name for column in columns]
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
        _category(input.row[column.name], f"{where}.{column.name}", max_text)
        if isinstance(column, CategoryColumn)
        else _value(input.row[column.name], f"{where}.{column.name}", column)
        for column in columns
    ]


def _value(value: Any, where: str, column: NumberColumn | DateColumn) -> float | None:
    """Return a number, or a date as microseconds since 1970, from what a text or number says."""
    number = isinstance(column, NumberColumn)
    if isinstance(value, str):
        values, strays = column.format.read(pa.array([value], pa.large_string()))
        if len(strays):
            what = f"must be a {'number' if number else 'date'} like {column.format.example!r}"
            raise InvalidInput(where, f"{what} or null, got the text {value[:40]!r}")
        if not number:
            return None if np.isnat(values[0]) else int(values[0].astype(np.int64))
        value = None if np.isnan(values[0]) else float(values[0])
    elif value is not None and not number:
        what = f"must be a date like {column.format.example!r} or null"
        raise InvalidInput(where, f"{what}, got {str(value).lower()[:40]}")
    if value is not None and not -_MAX_NUMBER <= value <= _MAX_NUMBER:
        raise InvalidInput(where, "the number is too large")
    return None if value is None else float(value)


def _as_values(column: EncodedColumn, values: tuple[Any, ...]) -> Any:
    """Return checked cells as a column for the encoder."""
    if isinstance(column, NumberColumn):
        return np.array(values, dtype=np.float64)  # None becomes NaN
    if isinstance(column, DateColumn):
        return pa.array(values, pa.timestamp("us"))
    return pa.array(values, pa.large_string())


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


def _columns(served: Served) -> tuple[EncodedColumn, ...]:
    """Return the columns in the order of the model."""
    scorer = served.bundle.scorer
    assert scorer is not None  # it takes tables
    return scorer.encoder.columns_  # type: ignore[union-attr]


def _too_long(text: str, limit: int) -> str:
    return f"the text has {len(text):,} characters, at most {limit:,} are allowed"


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRequest:
    """A validated request to score."""

    served: Served  # the bundle it was validated against, which decides
    rows: Sequence[Any]  # its inputs, as returned by `check_inputs`
    inputs: Sequence[Input]  # its inputs as sent, for the store
    body: bytes  # its raw body, to recognise a retry
    request: str  # id of the request
    since: float  # arrival time on the clock of `time.perf_counter`
    # unit, use_case, branch, point, reasons: see `PredictBody`
    unit: str | None = None
    use_case: str | None = None
    branch: str | None = None
    point: int | None = None
    reasons: int = 0
    explained: Sequence[RowExplanation] = ()  # contributions of its rows, if it asks for reasons
    key: str | None = None  # id of the API key


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """Scores and decision for one input."""

    logits: list[float]  # in the order of the bundle's classes
    probs: list[float]
    label: str  # the most probable class
    # the others: see `PredictedRow`
    decision: str | None = None
    acted_as: str | None = None
    action: str | None = None
    operating_point: int | None = None
    out_of_scope: bool | None = None
    # None without an operating point, or out of scope
    decision_score: DecisionScore | None = None
    # None if they were not requested
    reasons: Sequence[Reason] | None = None


def score(batch: Sequence[ScoreRequest]) -> list[tuple[ScoreRequest, list[ScoredRow]]]:
    """Score the inputs of a batch together and return the rows of each request.

    Requests with different bundles (during a swap) or operating points are scored separately.
    """
    results = []
    for (_, point), group in groupby(batch, key=lambda each: (id(each.served), each.point)):
        requests = list(group)
        served = requests[0].served
        inputs = collate((row for each in requests for row in each.rows), served)
        logits = served.bundle.predict_logits(inputs)
        rows = _decide_rows(served.bundle, logits, point)
        for each in requests:
            scored = [next(rows) for _ in each.rows]
            results.append((each, _add_reasons(each, scored) if each.reasons else scored))
    return results


def _add_reasons(request: ScoreRequest, rows: list[ScoredRow]) -> list[ScoredRow]:
    """Add the strongest parts of each input for its most probable class."""
    logits = np.array([row.logits for row in rows])
    labels = [int(np.argmax(row.probs)) for row in rows]
    reasons = list_reasons(request.explained, logits, labels, request.reasons)
    return [replace(row, reasons=each) for row, each in zip(rows, reasons, strict=True)]


def _decide_rows(bundle: Bundle, logits: FloatArray, point: int | None) -> Iterator[ScoredRow]:
    if not bundle.points:
        return _predict_rows(bundle, logits)
    decisions = bundle.decide(logits=logits, point=point)
    return (
        ScoredRow(
            row_logits,
            probs,
            str(label),
            "out_of_scope" if outside else decision,
            None if acted_as is None else str(acted_as),
            action,
            entry if entry >= 0 else None,
            outside if decisions.scope_checked else None,
            score,
        )
        for row_logits, probs, label, decision, acted_as, action, entry, outside, score in zip(
            logits.tolist(),
            decisions.probabilities.tolist(),
            decisions.label.tolist(),
            decisions.decision.tolist(),
            decisions.acted_as.tolist(),
            decisions.action.tolist(),
            decisions.operating_point.tolist(),
            decisions.out_of_scope.tolist(),
            score_decisions(decisions, bundle.active_rules(point)),
            strict=True,
        )
    )


def _predict_rows(bundle: Bundle, logits: FloatArray) -> Iterator[ScoredRow]:
    """Return the rows of a bundle without operating points: probabilities, no decision."""
    probs = bundle.predict_proba(logits=logits)
    scores = ModelScores.from_input(bundle.classes, logits=logits)
    outside = flag_rows(bundle.ood, scores, with_model=bundle.scorer is not None)
    flags = [None] * len(probs) if outside is None else np.asarray(outside).tolist()
    return (
        ScoredRow(row_logits, row, str(bundle.classes[int(np.argmax(row))]), out_of_scope=flag)
        for row_logits, row, flag in zip(logits.tolist(), probs.tolist(), flags, strict=True)
    )
