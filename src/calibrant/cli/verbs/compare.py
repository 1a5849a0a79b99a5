"""`calibrant compare`: two models on the same rows."""

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
from calibrant.cli.output import color, print_json, say, width
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.scores import Scores

__all__ = ["compare"]

NAME = "compare"
EXAMPLE = "calibrant demo --scores, then calibrant compare runs/demo/scores.csv runs/demo/ideal.csv"


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="Scores of the first model.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Scores of the second, on the same rows.")],
    names: Annotated[
        str | None,
        typer.Option(
            "--names", metavar="A,B", help="What to call them.", show_default="file names"
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
    """Compare two models on the same rows, each difference with its interval.

    Rows are paired by their order, or by the column id where both files have one.
    """
    check_confidence(confidence)
    called = _names(names, a, b)
    from calibrant.metrics import compare as measure
    from calibrant.scores import read_scores
    from calibrant.scores.paired import pair_scores

    both: list[Scores] = [
        read_scores(path, positive=positive, label=label, ids="id") for path in (a, b)
    ]
    first, second = pair_scores(*both, files=(a, b))
    result = measure(
        first.labels,
        first.probs,
        second.probs,
        weights=first.weights,
        target=None if target is None else target.value,
        names=called,
        n_bins=bins,
        confidence=confidence,
        rng=seed,
    )
    interruption.check()
    if json:
        print_json(result.to_dict())
        return
    from calibrant.reports import render_comparison

    say(render_comparison(result, width=width(), color=color()))


def _names(names: str | None, a: str, b: str) -> tuple[str, str]:
    """Return what to call the models: as asked, or after their files."""
    if names is None:
        first, second = Path(a).name.split(".")[0], Path(b).name.split(".")[0]
        return (first, second) if first != second else (a, b) if a != b else ("A", "B")
    found = [name.strip() for name in names.split(",")]
    if len(found) != 2 or not all(found) or found[0] == found[1]:
        raise InputError(f"--names must be two different names like old,new, got '{names}'.")
    return found[0], found[1]
