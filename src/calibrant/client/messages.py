"""What goes over the wire: the bodies of requests and answers, with the examples of the docs."""

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

__all__ = [
    "BundleAnswer",
    "BundleName",
    "ErasedAnswer",
    "Input",
    "LoggedLabel",
    "LoggedOutcome",
    "OutcomesAnswer",
    "OutcomesBody",
    "PredictAnswer",
    "PredictBody",
    "PredictedRow",
    "PredictionAnswer",
    "ProblemAnswer",
]

Name = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")
]
_READABLE = re.compile(r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$")
_PATTERN = Field(json_schema_extra={"pattern": _READABLE.pattern})


def _readable(value: str) -> str:
    if not _READABLE.fullmatch(value):
        raise ValueError("control characters other than tabs and line ends are not allowed")
    return value


Text = Annotated[str, AfterValidator(_readable), _PATTERN]
LongText = Annotated[str, StringConstraints(max_length=20_000), AfterValidator(_readable), _PATTERN]


class _Told:
    """Tells a value that is none of several kinds in one sentence, not in one for each kind.

    Parameters
    ----------
    sentence : what is needed
    """

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        told = {"custom_error_type": "kind", "custom_error_message": self._sentence}
        return {**handler(source), **told}


Cell = Annotated[
    Text | bool | int | float,
    _Told("a text without control characters, a finite number, true, false or null is needed"),
]
Logits = Annotated[
    list[float] | dict[str, float],
    _Told("finite numbers are needed: a list, or an object with one for each class"),
]


def _given(name: str, *kinds: str) -> dict[str, Any]:
    """Return the rule that a field is there and not null, for the description."""
    return {"required": [name], "properties": {name: {"type": [*kinds]}}}


class _Message(BaseModel):
    """What every body has: known fields only, no guessing of types, no NaN."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Input(_Message):
    """One input: a text, a row of a table, or logits where the bundle has no model."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                _given("text", "string"),
                _given("row", "object"),
                _given("logits", "array", "object"),
            ]
        }
    )

    text: Text | None = Field(None, description="For a bundle that reads texts.")
    row: dict[str, Cell | None] | None = Field(
        None, description="For a bundle that reads tables: a value for each column."
    )
    logits: Logits | None = Field(
        None,
        description="For a bundle without a model: a logit of each class, in order or by name.",
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        given = (self.text is not None) + (self.row is not None) + (self.logits is not None)
        if given != 1:
            raise ValueError("give exactly one of text, row and logits")
        return self


class PredictBody(_Message):
    """A request for predictions of one or many inputs."""

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
        description="Whom the inputs are about; all that is on record of a unit can be erased.",
    )
    use_case: Name | None = Field(None, description="What the prediction is used for.")
    branch: Name | None = Field(None, description="Branch of an experiment.")
    point: Annotated[int, Field(ge=0, le=1000)] | None = Field(
        None,
        description="Position of the operating point that decides; else the first of each class.",
    )


class BundleName(_Message):
    """Which bundle decided."""

    id: str = Field(description="The first 12 characters of the hash.")
    hash: str


Decision = Literal["act", "clear", "abstain", "out_of_scope"]


class PredictedRow(_Message):
    """What was decided about one input."""

    id: str = Field(description="Names this prediction in the store, for outcomes and questions.")
    label: str = Field(description="The most probable class.")
    probabilities: dict[str, float]
    decision: Decision | None = Field(description="null where the bundle has no operating point.")
    acted_as: str | None = Field(description="The class that is acted on.")
    action: str | None = Field(description="What is done for that class.")
    operating_point: int | None
    out_of_scope: bool | None = Field(description="null where the bundle has no rule for it.")


class PredictAnswer(_Message):
    """Predictions in the order of the inputs, on record when this is sent."""

    predictions: list[PredictedRow]
    bundle: BundleName
    request: str = Field(description="Names the request in the store.")
    repeated: bool = Field(description="Whether the answer is that of an earlier, equal request.")


_NEITHER_SOURCE_NOR_OTHER: JsonDict = {
    "properties": {"source": {"type": "null"}, "other": {"const": False}}
}
_NEITHER_VALUE_NOR_TEXT: JsonDict = {
    "properties": {"value": {"type": "null"}, "text": {"type": "null"}}
}


class OutcomeBody(_Message):
    """What became of one prediction: the true class, an outcome, or both."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                {"anyOf": [_given("label", "string"), _given("outcome", "string")]},
                {"anyOf": [_given("outcome", "string"), _NEITHER_VALUE_NOR_TEXT]},
                {"anyOf": [_given("label", "string"), _NEITHER_SOURCE_NOR_OTHER]},
            ]
        }
    )

    prediction: Name
    label: Name | None = Field(
        None, description="The true class: one of the bundle that made the prediction."
    )
    other: bool = Field(
        False, description="Whether the label may be a class which that bundle does not have."
    )
    source: Name | None = Field(None, description="Who says so.")
    outcome: Name | None = Field(None, description="What happened, in a name of your own.")
    value: float | None = Field(None, description="A figure of the outcome.")
    text: LongText | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.label is None and self.outcome is None:
            raise ValueError("give a label, an outcome, or both")
        if self.outcome is None and (self.value is not None or self.text is not None):
            raise ValueError("value and text belong to an outcome: name it")
        if self.label is None and (self.source is not None or self.other):
            raise ValueError("source and other belong to a label: give it")
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
    """How many labels and outcomes were written, and how many were there already."""

    added: int
    repeated: int


class LoggedLabel(_Message):
    """A true class on record."""

    id: str
    at: datetime
    label: str
    source: str | None


class LoggedOutcome(_Message):
    """An outcome on record."""

    id: str
    at: datetime
    outcome: str
    value: float | None
    text: str | None


class PredictionAnswer(PredictedRow):
    """A prediction in full, with what became of it."""

    at: datetime
    bundle: BundleName
    request: str
    position: int
    unit: str | None
    use_case: str | None
    branch: str | None
    input: dict[str, Any] | None = Field(description="null where only the hash is kept.")
    input_hash: str
    logits: dict[str, float]
    latency_ms: float
    labels: list[LoggedLabel]
    outcomes: list[LoggedOutcome]


class BundleAnswer(BundleName):
    """The bundle that serves."""

    name: str = Field(description="The folder's name.")
    classes: list[str]
    input: Literal["text", "table", "logits"]
    columns: dict[str, list[str]] = Field(description="Columns that a row needs: numbers, texts.")
    points: list[list[str]] = Field(description="For each operating point what it promises.")
    actions: dict[str, str]
    loaded_at: datetime
    refused: str | None = Field(description="Why a newer folder is not served.")


class ErasedAnswer(_Message):
    """How much was erased."""

    predictions: int
    labels: int
    outcomes: int


class Fault(_Message):
    """One fault of a body."""

    where: str
    message: str


class ProblemAnswer(BaseModel):
    """What went wrong, in one sentence (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[Fault] | None = None
