"""Responses of a service as frozen dataclasses; unknown fields of a newer service are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self


class InvalidResponse(ValueError):
    """A response lacks a field, or a field has the wrong type."""


class _Fields:
    """The fields of a response, type-checked when read."""

    def __init__(self, content: Any) -> None:
        if not isinstance(content, Mapping):
            raise InvalidResponse(f"{type(content).__name__} instead of an object")
        self._content = content

    def __call__(self, name: str, *kinds: type) -> Any:
        """Return a field of one of these types."""
        if name not in self._content:
            raise InvalidResponse(f"no '{name}'")
        value = self._content[name]
        if not isinstance(value, kinds):
            raise InvalidResponse(f"'{name}' is {type(value).__name__}")
        return value

    def optional(self, name: str, *kinds: type) -> Any:
        """Return a field of one of these types, or None."""
        return self(name, *kinds, type(None))

    def time(self, name: str) -> datetime:
        """Return a field as a datetime."""
        try:
            return datetime.fromisoformat(self(name, str))
        except ValueError:
            raise InvalidResponse(f"'{name}' is not a time") from None

    def numbers(self, name: str) -> dict[str, float]:
        """Return a field that is an object of numbers."""
        values = self(name, dict)
        if not all(isinstance(value, int | float) for value in values.values()):
            raise InvalidResponse(f"'{name}' has values that are not numbers")
        return {key: float(value) for key, value in values.items()}


@dataclass(frozen=True)
class BundleRef:
    """Id and hash of a bundle."""

    id: str  # the first 12 characters of the hash
    hash: str  # hash of the bundle's manifest, which contains the hash of every file

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Parse a response."""
        fields = _Fields(content)
        return cls(fields("id", str), fields("hash", str))


@dataclass(frozen=True)
class PredictionResult:
    """Prediction and decision for one input.

    Parameters
    ----------
    id : id of the prediction in the store; outcomes refer to it
    label : the most probable class
    probabilities : calibrated probability of each class
    decision : "act", "clear", "abstain" or "out_of_scope"; None without an operating point
    acted_as : the class that is acted on, or None
    action : action of that class, or None
    operating_point : index of the operating point that decided, or None
    out_of_scope : whether the input is unlike the train rows; None without a rule
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
    def from_json(cls, content: Any) -> Self:
        """Parse a response."""
        return cls(**_prediction_fields(_Fields(content)))


def _prediction_fields(fields: _Fields) -> dict[str, Any]:
    return {
        "id": fields("id", str),
        "label": fields("label", str),
        "probabilities": fields.numbers("probabilities"),
        "decision": fields.optional("decision", str),
        "acted_as": fields.optional("acted_as", str),
        "action": fields.optional("action", str),
        "operating_point": fields.optional("operating_point", int),
        "out_of_scope": fields.optional("out_of_scope", bool),
    }


@dataclass(frozen=True)
class Answer:
    """Predictions in the order of the inputs, all recorded in the store.

    Parameters
    ----------
    predictions : one for each input
    bundle : the bundle that decided
    request : id of the request in the store
    repeated : whether this is the stored answer of an earlier identical request
    """

    predictions: tuple[PredictionResult, ...]
    bundle: BundleRef
    request: str
    repeated: bool

    @classmethod
    def from_json(cls, content: Any, n: int) -> Self:
        """Parse a response for `n` inputs."""
        fields = _Fields(content)
        predictions = fields("predictions", list)
        if len(predictions) != n:
            raise InvalidResponse(f"{len(predictions)} predictions for {n} inputs")
        return cls(
            tuple(map(PredictionResult.from_json, predictions)),
            BundleRef.from_json(fields("bundle", dict)),
            fields("request", str),
            fields("repeated", bool),
        )


@dataclass(frozen=True)
class RecordedCounts:
    """Number of labels and outcomes recorded.

    Parameters
    ----------
    added : number of new records
    repeated : number that were already recorded
    """

    added: int
    repeated: int

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Parse a response."""
        fields = _Fields(content)
        return cls(fields("added", int), fields("repeated", int))


@dataclass(frozen=True)
class ErasedCounts:
    """Number of records of a unit that were erased."""

    predictions: int
    labels: int
    outcomes: int

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Parse a response."""
        fields = _Fields(content)
        return cls(*(fields(name, int) for name in ("predictions", "labels", "outcomes")))


@dataclass(frozen=True)
class ServedBundle(BundleRef):
    """The bundle that a service uses.

    Parameters
    ----------
    id, hash : see `BundleRef`
    name : name of its folder
    classes : class names as text
    input : input kind: "text", "table" or "logits"
    columns : required columns of a row: "numbers" and "texts"
    points : for each operating point, its promises as sentences
    actions : action of each class name
    loaded_at : when it was loaded
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
    def from_json(cls, content: Any) -> Self:
        """Parse a response."""
        fields = _Fields(content)
        columns = fields("columns", dict)
        return cls(
            id=fields("id", str),
            hash=fields("hash", str),
            name=fields("name", str),
            classes=_to_names(fields("classes", list)),
            input=fields("input", str),
            columns={kind: _to_names(names) for kind, names in columns.items()},
            points=tuple(map(_to_names, fields("points", list))),
            actions={str(name): str(action) for name, action in fields("actions", dict).items()},
            loaded_at=fields.time("loaded_at"),
            refused=fields.optional("refused", str),
        )


@dataclass(frozen=True)
class StoredLabel:
    """A recorded true class."""

    id: str
    at: datetime
    label: str
    source: str | None  # who assigned it, or None

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Parse a response."""
        fields = _Fields(content)
        columns = fields("id", str), fields.time("at")
        return cls(*columns, fields("label", str), fields.optional("source", str))


@dataclass(frozen=True)
class StoredOutcome:
    """A recorded outcome."""

    id: str
    at: datetime
    outcome: str  # what happened
    value: float | None
    text: str | None

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """Parse a response."""
        fields = _Fields(content)
        columns = fields("id", str), fields.time("at"), fields("outcome", str)
        return cls(*columns, fields.optional("value", int, float), fields.optional("text", str))


@dataclass(frozen=True)
class StoredPrediction(PredictionResult):
    """A stored prediction with its labels and outcomes.

    Parameters
    ----------
    id, label, probabilities, decision, acted_as, action, operating_point, out_of_scope : see
        `PredictionResult`
    at : when it was made
    bundle : the bundle that decided
    request, position : id of the request, and index of the input in it
    unit, use_case, branch : as sent, or None
    input : the input; None if only its hash is stored
    input_hash : keyed hash of the input
    logits : the model's logit of each class
    latency_ms : latency in milliseconds
    labels, outcomes : in the order they were recorded
    """

    at: datetime
    bundle: BundleRef
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
    def from_json(cls, content: Any) -> Self:
        """Parse a response."""
        fields = _Fields(content)
        return cls(
            **_prediction_fields(fields),
            at=fields.time("at"),
            bundle=BundleRef.from_json(fields("bundle", dict)),
            request=fields("request", str),
            position=fields("position", int),
            unit=fields.optional("unit", str),
            use_case=fields.optional("use_case", str),
            branch=fields.optional("branch", str),
            input=fields.optional("input", dict),
            input_hash=fields("input_hash", str),
            logits=fields.numbers("logits"),
            latency_ms=float(fields("latency_ms", int, float)),
            labels=tuple(map(StoredLabel.from_json, fields("labels", list))),
            outcomes=tuple(map(StoredOutcome.from_json, fields("outcomes", list))),
        )


def _to_names(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidResponse("a list of names has other values")
    return tuple(values)
