"""What a service answers, as frozen records; fields that a newer service adds are passed over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

__all__ = [
    "Answer",
    "BundleName",
    "Erased",
    "OddAnswer",
    "Predicted",
    "Recorded",
    "ServedBundle",
    "StoredLabel",
    "StoredOutcome",
    "StoredPrediction",
]


class OddAnswer(ValueError):
    """An answer lacks a field, or it holds something else than it should."""


class _Fields:
    """The fields of an answer, each checked when it is read."""

    def __init__(self, content: Any) -> None:
        if not isinstance(content, Mapping):
            raise OddAnswer(f"{type(content).__name__} instead of an object")
        self._content = content

    def __call__(self, name: str, *kinds: type) -> Any:
        """Return a field that is of one of these types."""
        if name not in self._content:
            raise OddAnswer(f"no '{name}'")
        value = self._content[name]
        if not isinstance(value, kinds):
            raise OddAnswer(f"'{name}' is {type(value).__name__}")
        return value

    def maybe(self, name: str, *kinds: type) -> Any:
        """Return a field that may also be null."""
        return self(name, *kinds, type(None))

    def time(self, name: str) -> datetime:
        """Return a field that holds a time."""
        try:
            return datetime.fromisoformat(self(name, str))
        except ValueError:
            raise OddAnswer(f"'{name}' is no time") from None

    def numbers(self, name: str) -> dict[str, float]:
        """Return a field that maps names to numbers."""
        found = self(name, dict)
        if not all(isinstance(value, int | float) for value in found.values()):
            raise OddAnswer(f"'{name}' does not hold numbers")
        return {key: float(value) for key, value in found.items()}


@dataclass(frozen=True)
class BundleName:
    """Which bundle decided.

    Parameters
    ----------
    id : the first 12 characters of the hash
    hash : of the bundle's manifest, which holds the hash of every file
    """

    id: str
    hash: str

    @classmethod
    def of(cls, content: Any) -> Self:
        """Read it from an answer."""
        fields = _Fields(content)
        return cls(fields("id", str), fields("hash", str))


@dataclass(frozen=True)
class Predicted:
    """What was decided about one input.

    Parameters
    ----------
    id : names the prediction in the store, for outcomes and questions
    label : the most probable class
    probabilities : of each class
    decision : "act", "clear", "abstain" or "out_of_scope"; None without an operating point
    acted_as : the class that is acted on, or None
    action : what is done for that class, or None
    operating_point : position of the point that decided, or None
    out_of_scope : whether the input is unlike the train rows; None where no rule tells
    """

    id: str
    label: str
    probabilities: Mapping[str, float]
    decision: str | None
    acted_as: str | None
    action: str | None
    operating_point: int | None
    out_of_scope: bool | None

    @classmethod
    def of(cls, content: Any) -> Self:
        """Read it from an answer."""
        return cls(**_predicted(_Fields(content)))


def _predicted(fields: _Fields) -> dict[str, Any]:
    return {
        "id": fields("id", str),
        "label": fields("label", str),
        "probabilities": fields.numbers("probabilities"),
        "decision": fields.maybe("decision", str),
        "acted_as": fields.maybe("acted_as", str),
        "action": fields.maybe("action", str),
        "operating_point": fields.maybe("operating_point", int),
        "out_of_scope": fields.maybe("out_of_scope", bool),
    }


@dataclass(frozen=True)
class Answer:
    """Predictions in the order of the inputs; all of them are on record.

    Parameters
    ----------
    predictions : one for each input
    bundle : the bundle that decided
    request : names the request in the store
    repeated : whether this is the stored answer of an earlier, equal request
    """

    predictions: tuple[Predicted, ...]
    bundle: BundleName
    request: str
    repeated: bool

    @classmethod
    def of(cls, content: Any, n: int) -> Self:
        """Read it from an answer about `n` inputs."""
        fields = _Fields(content)
        found = fields("predictions", list)
        if len(found) != n:
            raise OddAnswer(f"{len(found)} predictions for {n} inputs")
        return cls(
            tuple(map(Predicted.of, found)),
            BundleName.of(fields("bundle", dict)),
            fields("request", str),
            fields("repeated", bool),
        )


@dataclass(frozen=True)
class Recorded:
    """What became of labels and outcomes.

    Parameters
    ----------
    added : how many were written
    repeated : how many were there already
    """

    added: int
    repeated: int

    @classmethod
    def of(cls, content: Any) -> Self:
        """Read it from an answer."""
        fields = _Fields(content)
        return cls(fields("added", int), fields("repeated", int))


@dataclass(frozen=True)
class Erased:
    """How much of a unit was erased.

    Parameters
    ----------
    predictions, labels, outcomes : how many of each
    """

    predictions: int
    labels: int
    outcomes: int

    @classmethod
    def of(cls, content: Any) -> Self:
        """Read it from an answer."""
        fields = _Fields(content)
        return cls(*(fields(name, int) for name in ("predictions", "labels", "outcomes")))


@dataclass(frozen=True)
class ServedBundle(BundleName):
    """The bundle that serves.

    Parameters
    ----------
    id, hash : see `BundleName`
    name : that of its folder
    classes : names of the classes as text
    input : what an input must be: "text", "table" or "logits"
    columns : the columns that a row needs: "numbers" and "texts"
    points : for each operating point the sentences of its promises
    actions : for class names what is done
    loaded_at : when
    refused : why a newer bundle is not served, or None
    """

    name: str
    classes: tuple[str, ...]
    input: str
    columns: Mapping[str, tuple[str, ...]]
    points: tuple[tuple[str, ...], ...]
    actions: Mapping[str, str]
    loaded_at: datetime
    refused: str | None

    @classmethod
    def of(cls, content: Any) -> Self:
        """Read it from an answer."""
        fields = _Fields(content)
        columns = fields("columns", dict)
        return cls(
            id=fields("id", str),
            hash=fields("hash", str),
            name=fields("name", str),
            classes=_texts(fields("classes", list)),
            input=fields("input", str),
            columns={kind: _texts(names) for kind, names in columns.items()},
            points=tuple(map(_texts, fields("points", list))),
            actions={str(of): str(what) for of, what in fields("actions", dict).items()},
            loaded_at=fields.time("loaded_at"),
            refused=fields.maybe("refused", str),
        )


@dataclass(frozen=True)
class StoredLabel:
    """A true class on record.

    Parameters
    ----------
    id, at : its name in the store, and when it came
    label : the class
    source : who says so, or None
    """

    id: str
    at: datetime
    label: str
    source: str | None

    @classmethod
    def of(cls, content: Any) -> Self:
        """Read it from an answer."""
        fields = _Fields(content)
        named = fields("id", str), fields.time("at")
        return cls(*named, fields("label", str), fields.maybe("source", str))


@dataclass(frozen=True)
class StoredOutcome:
    """An outcome on record.

    Parameters
    ----------
    id, at : its name in the store, and when it came
    outcome : what happened
    value, text : more about it, or None
    """

    id: str
    at: datetime
    outcome: str
    value: float | None
    text: str | None

    @classmethod
    def of(cls, content: Any) -> Self:
        """Read it from an answer."""
        fields = _Fields(content)
        named = fields("id", str), fields.time("at"), fields("outcome", str)
        return cls(*named, fields.maybe("value", int, float), fields.maybe("text", str))


@dataclass(frozen=True)
class StoredPrediction(Predicted):
    """A prediction in full, with what became of it.

    Parameters
    ----------
    id, label, probabilities, decision, acted_as, action, operating_point, out_of_scope : see
        `Predicted`
    at : when it was made
    bundle : the bundle that decided
    request, position : the request, and the place of the input in it
    unit, use_case, branch : as they were given, or None
    input : what came in; None where only its hash is kept
    input_hash : keyed hash of what came in
    logits : the model's own scores of each class
    latency_ms : milliseconds that it took
    labels, outcomes : what became of it, in the order in which it came
    """

    at: datetime
    bundle: BundleName
    request: str
    position: int
    unit: str | None
    use_case: str | None
    branch: str | None
    input: Mapping[str, Any] | None
    input_hash: str
    logits: Mapping[str, float]
    latency_ms: float
    labels: tuple[StoredLabel, ...]
    outcomes: tuple[StoredOutcome, ...]

    @classmethod
    def of(cls, content: Any) -> Self:
        """Read it from an answer."""
        fields = _Fields(content)
        return cls(
            **_predicted(fields),
            at=fields.time("at"),
            bundle=BundleName.of(fields("bundle", dict)),
            request=fields("request", str),
            position=fields("position", int),
            unit=fields.maybe("unit", str),
            use_case=fields.maybe("use_case", str),
            branch=fields.maybe("branch", str),
            input=fields.maybe("input", dict),
            input_hash=fields("input_hash", str),
            logits=fields.numbers("logits"),
            latency_ms=float(fields("latency_ms", int, float)),
            labels=tuple(map(StoredLabel.of, fields("labels", list))),
            outcomes=tuple(map(StoredOutcome.of, fields("outcomes", list))),
        )


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise OddAnswer("a list that should hold names does not")
    return tuple(values)
