"""Options that several verbs share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from calibrant.errors import InputError


class TargetName(StrEnum):
    """Target of the headline calibration error."""

    positive = "positive"
    top_label = "top-label"


Json = Annotated[
    bool, typer.Option("--json", envvar="CALIBRANT_JSON", help="Print a single JSON object.")
]
Debug = Annotated[
    bool,
    typer.Option("--debug", envvar="CALIBRANT_DEBUG", help="Show the traceback of an error."),
]
TargetOption = Annotated[
    TargetName | None,
    typer.Option(
        "--target",
        envvar="CALIBRANT_TARGET",
        help="Evaluate P(positive) or the predicted class.",
        show_default="positive for two classes, else top-label",
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive",
        metavar="NAME",
        help="Positive class of a binary problem.",
        show_default="the second class",
    ),
]
LonePositive = Annotated[
    str | None,
    typer.Option(
        "--positive",
        metavar="NAME",
        help="Class of a lone prob or logit column.",
        show_default="1 or true",
    ),
]
Label = Annotated[str, typer.Option("--label", metavar="COLUMN", help="Name of the label column.")]
Bins = Annotated[
    int,
    typer.Option(
        "--bins",
        min=1,
        max=10_000,
        envvar="CALIBRANT_BINS",
        help="Number of bins for binned errors.",
    ),
]
Confidence = Annotated[
    float,
    typer.Option(
        "--confidence", envvar="CALIBRANT_CONFIDENCE", help="Confidence level of the intervals."
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, envvar="CALIBRANT_SEED", help="Random seed for resampling.")
]


def check_confidence(confidence: float) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if not 0 < confidence < 1:
        raise InputError(
            f"--confidence must lie between 0 and 1, got {confidence:g}: 0.95 is usual."
        )
