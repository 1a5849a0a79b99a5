"""Pydantic models of request and response bodies, with the examples shown in `/docs`."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StringConstraints,
    model_validator,
)
from pydantic.config import JsonDict

Name = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")
]
_READABLE = re.compile(r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$")
_PATTERN = Field(json_schema_extra={"pattern": _READABLE.pattern})


def _check_readable(value: str) -> str:
    if not _READABLE.fullmatch(value):
        raise ValueError("control characters other than tabs and line ends are not allowed")
    return value


Text = Annotated[str, AfterValidator(_check_readable), _PATTERN]
LongText = Annotated[
    str, StringConstraints(max_length=20_000), AfterValidator(_check_readable), _PATTERN
]


class _UnionError:
    """Annotation that replaces pydantic's errors of a union, one per member, by one message."""

    def __init__(self, message: str) -> None:
        self._message = message

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        custom = {"custom_error_type": "kind", "custom_error_message": self._message}
        return {**handler(source), **custom}


Cell = Annotated[
    Text | bool | int | float,
    _UnionError("must be a text without control characters, a finite number, true, false or null"),
]
Logits = Annotated[
    list[float] | dict[str, float],
    _UnionError("must be finite numbers: a list, or an object with one for each class"),
]


def _required(name: str, *kinds: str) -> dict[str, Any]:
    """Return the JSON schema of a required field that is not null."""
    return {"required": [name], "properties": {name: {"type": [*kinds]}}}


class _Message(BaseModel):
    """Base of all messages: no unknown fields, no type coercion, no NaN."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Input(_Message):
    """One input: a text, a table row, or logits if the bundle has no model."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                _required("text", "string"),
                _required("row", "object"),
                _required("logits", "array", "object"),
            ]
        }
    )

    text: Text | None = Field(None, description="For a bundle that takes texts.")
    row: dict[str, Cell | None] | None = Field(
        None, description="For a bundle that takes table rows: a value for each column."
    )
    logits: Logits | None = Field(
        None,
        description="For a bundle without a model: a logit for each class, in order or by name.",
    )

    @model_validator(mode="after")
    def _check_one_kind(self) -> Self:
        count = (self.text is not None) + (self.row is not None) + (self.logits is not None)
        if count != 1:
            raise ValueError("give exactly one of text, row and logits")
        return self


class PredictBody(_Message):
    """A request to predict one or many inputs."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "inputs": [{"text": "the zip broke on the first day"}],
                "unit": "customer-17",
                "use_case": "returns",
            }
        }
    )

    inputs: Annotated[list[Input], Field(min_length=1, fail_fast=True)]
    unit: Name | None = Field(
        None,
        description="The person or object the inputs are about; a unit's records can be erased.",
    )
    use_case: Name | None = Field(None, description="What the prediction is used for.")
    branch: Name | None = Field(None, description="Branch of an experiment.")
    point: Annotated[int, Field(ge=0, le=1000)] | None = Field(
        None,
        description="Index of the operating point that decides; default: the first of each class.",
    )
    reasons: Annotated[int, Field(ge=0, le=100)] | None = Field(
        None,
        description="Largest number of reasons of each prediction, for a model that gives reasons; "
        "default: none.",
    )


class PredictedReason(_Message):
    """A part of an input, and what it contributes to the label."""

    part: str = Field(description="A column of the row, or an n-gram of the text.")
    contribution: float = Field(
        description="To the log-odds of the label, before calibration; with several classes, to "
        "its mean log-odds against each other class."
    )


class BundleName(_Message):
    """Id and hash of a bundle."""

    id: str = Field(description="The first 12 characters of the hash.")
    hash: str


Decision = Literal["act", "clear", "abstain", "out_of_scope"]


class PredictedRow(_Message):
    """Prediction and decision for one input."""

    id: str = Field(description="Id of the prediction in the store; outcomes refer to it.")
    label: str = Field(description="The most probable class.")
    probabilities: dict[str, float]
    decision: Decision | None = Field(description="null if the bundle has no operating point.")
    acted_as: str | None = Field(description="The class that is acted on.")
    action: str | None = Field(description="The action of that class.")
    operating_point: int | None
    out_of_scope: bool | None = Field(description="null if the bundle has no out-of-scope rule.")
    decision_rule: str | None = Field(
        None,
        description="The rule that decided or, for a row left to a person, that of the most "
        "probable class; null if no rule was applied: without an operating point, or out of scope.",
    )
    decision_score: float | None = Field(
        None,
        description="The number that this rule compares with its threshold: the model's own "
        "probability, unless the rule decides on calibrated scores.",
    )
    decision_threshold: float | None = Field(
        None, description="The threshold on the decision score: from it on the rule acts."
    )
    calibrated_threshold: float | None = Field(
        None,
        description="Where the threshold lies among the calibrated probabilities; null if it "
        "lies nowhere, because the calibrator does not keep the order of rows by this score.",
    )
    reasons: list[PredictedReason] | None = Field(
        None,
        description="The parts of the input that move the model most, strongest first; empty if "
        "it cannot judge the input; null if they were not requested, and in a stored answer of "
        "another bundle. They are not stored.",
    )


class PredictAnswer(_Message):
    """Predictions in the order of the inputs, recorded before this is sent."""

    predictions: list[PredictedRow]
    bundle: BundleName
    request: str = Field(description="Id of the request in the store.")
    repeated: bool = Field(
        description="Whether this is the stored answer of an earlier identical request."
    )


_NEITHER_SOURCE_NOR_OTHER: JsonDict = {
    "properties": {"source": {"type": "null"}, "other": {"const": False}}
}
_NEITHER_VALUE_NOR_TEXT: JsonDict = {
    "properties": {"value": {"type": "null"}, "text": {"type": "null"}}
}


class OutcomeBody(_Message):
    """The true class of a prediction, an outcome, or both."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                {"anyOf": [_required("label", "string"), _required("outcome", "string")]},
                {"anyOf": [_required("outcome", "string"), _NEITHER_VALUE_NOR_TEXT]},
                {"anyOf": [_required("label", "string"), _NEITHER_SOURCE_NOR_OTHER]},
            ]
        }
    )

    prediction: Name
    label: Name | None = Field(
        None,
        description="The true class: one of the classes of the bundle that made the prediction.",
    )
    other: bool = Field(
        False, description="Whether the label may be a class that the bundle does not have."
    )
    source: Name | None = Field(None, description="Who assigned the label.")
    outcome: Name | None = Field(None, description="Name of what happened, of your choice.")
    value: float | None = Field(None, description="A number for the outcome.")
    text: LongText | None = None

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        if self.label is None and self.outcome is None:
            raise ValueError("label, outcome or both are required")
        if self.outcome is None and (self.value is not None or self.text is not None):
            raise ValueError("value and text require an outcome")
        if self.label is None and (self.source is not None or self.other):
            raise ValueError("source and other require a label")
        return self


class OutcomesBody(_Message):
    """Labels and outcomes of earlier predictions."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "outcomes": [
                    {
                        "prediction": "0199d0f2-7a3c-7c1e-9a51-3f2f6c1b8e77",
                        "label": "item_defective",
                        "source": "agent",
                    }
                ]
            }
        }
    )

    outcomes: Annotated[list[OutcomeBody], Field(min_length=1, fail_fast=True)]


class OutcomesAnswer(_Message):
    """Number of labels and outcomes added, and number already recorded."""

    added: int
    repeated: int


class LoggedLabel(_Message):
    """A recorded true class."""

    id: str
    at: datetime
    label: str
    source: str | None


class LoggedOutcome(_Message):
    """A recorded outcome."""

    id: str
    at: datetime
    outcome: str
    value: float | None
    text: str | None


class PredictionAnswer(PredictedRow):
    """A stored prediction with its labels and outcomes."""

    at: datetime
    bundle: BundleName
    request: str
    position: int
    unit: str | None
    use_case: str | None
    branch: str | None
    input: dict[str, Any] | None = Field(description="null if only the hash is stored.")
    input_hash: str
    logits: dict[str, float]
    latency_ms: float
    labels: list[LoggedLabel]
    outcomes: list[LoggedOutcome]


class RuleAnswer(_Message):
    """A rule of an operating point: its threshold on both scales."""

    operating_point: int
    rule: str = Field(description="What it does.")
    class_: str | None = Field(
        alias="class", description="Its class; null if it accepts predictions of any class."
    )
    clears: bool = Field(description="Whether it clears rows below its threshold.")
    decides_on: Literal["raw", "calibrated"] = Field(
        description="Whose probabilities are its decision scores: the model's or the calibrator's."
    )
    scale: Literal["probability", "log-odds"] = Field(description="Scale of score and threshold.")
    threshold: float | None = Field(description="On the decision score; null if infinite.")
    calibrated_threshold: float | None = Field(
        description="Where it lies among calibrated probabilities; null if nowhere."
    )
    same_scale: bool = Field(
        description="Whether decision scores are the probabilities in the answers."
    )
    alternative: bool = Field(description="Whether it decides only if a request names its point.")


class BundleAnswer(BundleName):
    """The served bundle."""

    name: str = Field(description="Name of the folder.")
    classes: list[str]
    input: Literal["text", "table", "logits"]
    columns: dict[str, list[str]] = Field(
        description="Required columns of a row: numbers, texts, and, if there are any, formatted: "
        "dates, and numbers that may be texts written as in training."
    )
    points: list[list[str]] = Field(description="Promises of each operating point.")
    rules: list[RuleAnswer] = Field(description="Every rule, with its threshold.")
    actions: dict[str, str]
    loaded_at: datetime
    gives_reasons: bool = Field(description="Whether predictions can have reasons.")
    refused: str | None = Field(
        description="Why a newer bundle in the folder is not served, or null."
    )


class ErasedAnswer(_Message):
    """Number of records erased."""

    predictions: int
    labels: int
    outcomes: int


class Fault(_Message):
    """One error in a body."""

    where: str
    message: str


class ProblemAnswer(BaseModel):
    """Error message (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[Fault] | None = None
