"""Options that several verbs share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from calibrant.errors import InputError

__all__ = [
    "Bins",
    "Confidence",
    "Debug",
    "Json",
    "Label",
    "LonePositive",
    "Positive",
    "Seed",
    "TargetName",
    "TargetOption",
    "check_confidence",
]


class TargetName(StrEnum):
    """What the headline judges."""

    positive = "positive"
    top_label = "top-label"


Json = Annotated[
    bool, typer.Option("--json", envvar="CALIBRANT_JSON", help="Print one JSON object, no more.")
]
Debug = Annotated[
    bool,
    typer.Option("--debug", envvar="CALIBRANT_DEBUG", help="Show the traceback of a failure."),
]
TargetOption = Annotated[
    TargetName | None,
    typer.Option(
        "--target",
        envvar="CALIBRANT_TARGET",
        help="What is judged: P(positive) or the predicted class.",
        show_default="positive for two classes, else top-label",
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive",
        metavar="NAME",
        help="The class that counts as the event, of two.",
        show_default="the second",
    ),
]
LonePositive = Annotated[
    str | None,
    typer.Option(
        "--positive",
        metavar="NAME",
        help="The class that a lone prob or logit is of.",
        show_default="1 or true",
    ),
]
Label = Annotated[str, typer.Option("--label", metavar="COLUMN", help="Name of the label column.")]
Bins = Annotated[
    int,
    typer.Option(
        "--bins", min=1, max=10_000, envvar="CALIBRANT_BINS", help="Bins of binned errors."
    ),
]
Confidence = Annotated[
    float,
    typer.Option("--confidence", envvar="CALIBRANT_CONFIDENCE", help="Coverage of the intervals."),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, envvar="CALIBRANT_SEED", help="Seed of the resampling.")
]


def check_confidence(confidence: float) -> None:
    """Refuse a coverage outside (0, 1) before any work is done."""
    if not 0 < confidence < 1:
        raise InputError(
            f"--confidence must lie between 0 and 1, got {confidence:g}: 0.95 is usual."
        )
