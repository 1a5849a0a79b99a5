"""`calibrant compare`: compare two models on the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.cli import interruption
from calibrant.cli.options import (
    Bins,
    Confidence,
    Debug,
    Json,
    Label,
    Positive,
    Seed,
    TargetOption,
    check_confidence,
)
from calibrant.cli.output import color, echo, print_json, width
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.scores import Scores

NAME = "compare"
EXAMPLE = "calibrant demo --scores, then calibrant compare runs/demo/scores.csv runs/demo/ideal.csv"


def compare_command(
    a: Annotated[str, typer.Argument(metavar="A", help="Scores of the first model.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Scores of the second, on the same rows.")],
    names: Annotated[
        str | None,
        typer.Option(
            "--names", metavar="A,B", help="Names of the models.", show_default="file names"
        ),
    ] = None,
    json: Json = False,
    target: TargetOption = None,
    positive: Positive = None,
    bins: Bins = 15,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    label: Label = "label",
    debug: Debug = False,
) -> None:
    """Compare two models on the same rows, with an interval for each difference.

    Rows are paired by the column id if both files have one, else by order.
    """
    check_confidence(confidence)
    model_names = _model_names(names, a, b)
    from calibrant.metrics import compare
    from calibrant.scores import read_scores
    from calibrant.scores.paired import pair_scores

    pair: list[Scores] = [
        read_scores(path, positive=positive, label=label, ids="id") for path in (a, b)
    ]
    first, second = pair_scores(*pair, files=(a, b))
    result = compare(
        first.labels,
        first.probs,
        second.probs,
        weights=first.weights,
        target=None if target is None else target.value,
        names=model_names,
        n_bins=bins,
        confidence=confidence,
        rng=seed,
    )
    interruption.check()
    if json:
        print_json(result.to_dict())
        return
    from calibrant.reports import render_comparison

    echo(render_comparison(result, width=width(), color=color()))


def _model_names(names: str | None, a: str, b: str) -> tuple[str, str]:
    """Return the names of the models: from --names, or their file names."""
    if names is None:
        first, second = Path(a).name.split(".")[0], Path(b).name.split(".")[0]
        return (first, second) if first != second else (a, b) if a != b else ("A", "B")
    parts = [name.strip() for name in names.split(",")]
    if len(parts) != 2 or not all(parts) or parts[0] == parts[1]:
        raise InputError(f"--names must be two different names like old,new, got '{names}'.")
    return parts[0], parts[1]
