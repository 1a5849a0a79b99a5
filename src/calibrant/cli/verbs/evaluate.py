"""`calibrant evaluate`: metrics with intervals, a verdict and a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    from calibrant.results import Evaluation

NAME = "evaluate"
EXAMPLE = "calibrant demo --scores, then calibrant evaluate runs/demo/scores.csv --group channel"
MOST_IN_MEMORY = 2_000_000


def evaluate_command(
    scores: Annotated[
        list[str],
        typer.Argument(metavar="SCORES", help="csv, parquet, jsonl or npz: files, folder, glob."),
    ],
    group: Annotated[
        str | None,
        typer.Option("--group", metavar="COLUMN", help="Also evaluate each value of this column."),
    ] = None,
    json: Json = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PATH", help="Write an HTML report.")
    ] = None,
    target: TargetOption = None,
    positive: Positive = None,
    bins: Bins = 15,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Read in constant memory.",
            show_default=f"beyond {MOST_IN_MEMORY:,} rows",
        ),
    ] = None,
    label: Label = "label",
    debug: Debug = False,
) -> None:
    """Evaluate the calibration and accuracy of SCORES.

    Columns: label, and prob_<class> or logit_<class> for each class; for two classes, a lone
    prob or logit will do. A column weight is optional.
    """
    from calibrant.scores.files import count_rows, score_files

    check_confidence(confidence)
    files = score_files(scores)
    if html is not None:
        _check_report(html, files)
    rows = count_rows(files)
    options = {
        "target": None if target is None else target.value,
        "n_bins": bins,
        "confidence": confidence,
    }
    columns = {"positive": positive, "label": label}
    if stream or (stream is None and rows > MOST_IN_MEMORY):
        if group is not None:
            raise InputError(
                f"--group {group} needs all rows in memory, but streaming is on for about "
                f"{rows:,} rows: add --no-stream."
            )
        result = evaluate_stream(files, columns, options, seed, rows)
    else:
        result = evaluate_file(files, {**columns, "group": group}, options, seed)
    show_evaluation(result, source=", ".join(scores), html=html, json=json)


def evaluate_file(
    files: Iterable[Path], columns: Mapping[str, Any], options: Mapping[str, Any], seed: int
) -> Evaluation:
    """Evaluate score files in memory."""
    import numpy as np

    from calibrant.cli.progress import progress
    from calibrant.inputs import check_two_classes
    from calibrant.metrics import evaluate
    from calibrant.scores import read_scores

    with progress("evaluating"):
        scores = read_scores(list(files), **columns)
        check_two_classes(np.bincount(scores.labels), scores.classes)
        result = evaluate(
            scores.labels,
            scores.probs,
            weights=scores.weights,
            groups=scores.groups,
            rng=seed,
            **options,
        )
    return result.with_classes(scores.classes, scores.notes)


def evaluate_stream(
    files: Iterable[Path],
    columns: Mapping[str, Any],
    options: Mapping[str, Any],
    seed: int,
    rows: int,
) -> Evaluation:
    """Evaluate score files batch by batch, in constant memory."""
    from calibrant.cli.progress import progress
    from calibrant.inputs import check_two_classes
    from calibrant.metrics.streaming import StreamingEvaluation
    from calibrant.scores import scan_scores

    state, first = None, None
    with progress("evaluating", rows) as advance:
        for batch in scan_scores(list(files), **columns):
            if state is None or first is None:
                first = batch
                weighted = batch.weights is not None
                state = StreamingEvaluation(len(batch.classes), weighted=weighted, **options)
            if batch.weights is None or batch.weights.any():  # rows of weight 0 add nothing
                state.update(batch.labels, batch.probs, batch.weights)
            advance(batch.n)
            interruption.check()
    assert state is not None  # scanning no rows raises
    assert first is not None
    check_two_classes(state.confusion[0].sum(axis=1), first.classes)
    return state.compute(rng=seed).with_classes(first.classes, first.notes)


def show_evaluation(
    result: Evaluation, *, source: str, html: Path | None, json: bool, flag: str = "--html"
) -> None:
    """Print the result and write the report if requested; `flag` names it in errors."""
    interruption.check()
    if html is not None:
        from calibrant.reports import write_html

        write_html(result, html, title="Evaluation", source=source, name=flag)
    if json:
        report = {} if html is None else {"report": str(html)}
        print_json({**result.to_dict(), **report})
        return
    from calibrant.reports import render_text

    echo(render_text(result, width=width(), color=color()))
    if html is not None:
        echo(f"\nThe report is in {html}")


def _check_report(html: Path, files: Iterable[Path]) -> None:
    from calibrant.files.atomic_write import check_writable

    check_writable(html, name="--html")
    if any(html.resolve() == file.resolve() for file in files):
        raise InputError(f"--html {html} is also an input file: choose another name.")
