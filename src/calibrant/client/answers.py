"""Responses of a service as frozen dataclasses; unknown fields of a newer service are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class InvalidResponse(ValueError):
    """A response lacks a field, or a field has the wrong type."""


Parsed = TypeVar("Parsed")


def parse_response(kind: type[Parsed], content: Any) -> Parsed:
    """Return a response as one of the classes below, without conversions between types."""
    from pydantic import ValidationError
    from pydantic_core import to_json

    try:
        # In JSON a time is a text and a tuple is a list; from Python objects they would be refused.
        adapter: TypeAdapter[Parsed] = _adapter(cast("Any", kind))
        return adapter.validate_json(to_json(content), strict=True)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, fault["loc"])) or "the response"
        raise InvalidResponse(f"'{where}': {fault['msg']}") from None


@lru_cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


@dataclass(frozen=True)
class BundleRef:
    """Id and hash of a bundle."""

    id: str  # the first 12 characters of the hash
    hash: str  # hash of the bundle's manifest, which contains the hash of every file


@dataclass(frozen=True)
class PartReason:
    """A part of an input, and its contribution to the label against the other classes."""

    part: str  # a column of a table, or an n-gram of a text
    contribution: float  # above 0 where it speaks for the label; as log-odds


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
    decision_rule : the rule that decided, or that of the most probable class for a row left to a
        person; None if no rule was applied, and from older services
    decision_score : the number that this rule compares with its threshold; not a calibrated
        probability, unless the rule decides on those
    decision_threshold : the threshold on the decision score
    calibrated_threshold : where it lies among calibrated probabilities, or None if nowhere
    reasons : the parts of the input that move the model most, strongest first; None if they were
        not asked for, in a stored prediction, and if another bundle made a stored answer
    """

    id: str
    label: str
    probabilities: Mapping[str, float]
    decision: str | None
    acted_as: str | None
    action: str | None
    operating_point: int | None
    out_of_scope: bool | None
    decision_rule: str | None = field(default=None, kw_only=True)
    decision_score: float | None = field(default=None, kw_only=True)
    decision_threshold: float | None = field(default=None, kw_only=True)
    calibrated_threshold: float | None = field(default=None, kw_only=True)
    reasons: tuple[PartReason, ...] | None = field(default=None, kw_only=True)


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


@dataclass(frozen=True)
class ErasedCounts:
    """Number of records of a unit that were erased."""

    predictions: int
    labels: int
    outcomes: int


@dataclass(frozen=True)
class ServedRule:
    """A rule of an operating point of the served bundle: a threshold on the decision score."""

    operating_point: int  # position of its operating point
    rule: str  # what it does
    clears: bool  # whether it clears rows below its threshold
    decides_on: str  # "raw" or "calibrated": whose probabilities are its decision scores
    scale: str  # of score and threshold: "probability" or "log-odds"
    threshold: float | None  # None if infinite
    calibrated_threshold: float | None  # among calibrated probabilities; None if nowhere
    same_scale: bool  # whether decision scores are the probabilities in the answers
    alternative: bool  # whether it decides only if a request names its point


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
    rules : every rule with its thresholds; empty from older services
    actions : action of each class name
    loaded_at : when it was loaded
    refused : why a newer bundle is not served, or None
    gives_reasons : whether `predict` can return reasons; None from older services
    """

    name: str
    classes: tuple[str, ...]
    input: str
    columns: Mapping[str, tuple[str, ...]]
    points: tuple[tuple[str, ...], ...]
    actions: Mapping[str, str]
    loaded_at: datetime
    refused: str | None
    rules: tuple[ServedRule, ...] = ()
    gives_reasons: bool | None = None


@dataclass(frozen=True)
class StoredLabel:
    """A recorded true class."""

    id: str
    at: datetime
    label: str
    source: str | None  # who assigned it, or None


@dataclass(frozen=True)
class StoredOutcome:
    """A recorded outcome."""

    id: str
    at: datetime
    outcome: str  # what happened
    value: float | None
    text: str | None


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
