"""`calibrant threshold`: choose an operating point for a target."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import interruption
from calibrant.cli.options import Debug, Json, Label
from calibrant.cli.output import color, echo, print_json, width
from calibrant.cli.targets import TargetRequest, parse_band, parse_targets
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.workflows.choose_point import ThresholdResult

NAME = "threshold"
EXAMPLE = (
    "calibrant demo --scores, then calibrant threshold runs/demo/scores.csv "
    '--hold "item_defective: precision>=0.85" -o runs/demo/point.json'
)


def threshold_command(
    scores: Annotated[
        list[str],
        typer.Argument(metavar="SCORES", help="csv, parquet, jsonl or npz: files, folder, glob."),
    ],
    hold: Annotated[
        list[str] | None,
        typer.Option(
            "--hold",
            metavar="TARGET",
            help='Target like "spam: precision>=0.85"; may be repeated.',
        ),
    ] = None,
    maximise: Annotated[
        str | None,
        typer.Option(
            "--maximise",
            "--maximize",
            metavar="RATE",
            help="Rate to maximise.",
            show_default="recall if precision is held, precision if recall is",
        ),
    ] = None,
    minimise: Annotated[
        str | None,
        typer.Option(
            "--minimise", "--minimize", metavar="RATE", help="Rate to minimise, like cost."
        ),
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option("--cost", metavar="fp=1,fn=5", help="Costs of wrong decisions."),
    ] = None,
    act: Annotated[
        str | None,
        typer.Option(
            "--act", metavar="TARGET", help='Band: target for rows acted on, like "precision>=0.9".'
        ),
    ] = None,
    clear: Annotated[
        str | None,
        typer.Option(
            "--clear", metavar="TARGET", help='Band: target for rows cleared, like "npv>=0.99".'
        ),
    ] = None,
    confidence: Annotated[
        str,
        typer.Option(
            "--confidence",
            metavar="SHARE",
            envvar="CALIBRANT_CONFIDENCE",
            help="Confidence of the promise, or none.",
        ),
    ] = "0.95",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PATH", help="Output file for the point.")
    ] = None,
    json: Json = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PATH", help="Write an HTML report.")
    ] = None,
    candidates: Annotated[
        int,
        typer.Option(
            "--candidates", metavar="M", min=1, help="Number of models compared on these rows."
        ),
    ] = 1,
    calibrator: Annotated[
        Path | None,
        typer.Option(
            "--calibrator", metavar="FILE", help="Calibrate the scores with this file first."
        ),
    ] = None,
    fitted_here: Annotated[
        bool, typer.Option("--fitted-here", help="The calibrator was fitted on these rows.")
    ] = False,
    largest_weight: Annotated[
        float | None,
        typer.Option(
            "--largest-weight",
            metavar="W",
            help="Upper bound of a row's weight in the sampling design.",
            show_default="the largest weight in SCORES",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(
            "--positive", metavar="NAME", help="Class to act on, or class of a lone prob."
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            "--seed", min=0, envvar="CALIBRANT_SEED", help="Random seed for the order of ties."
        ),
    ] = 0,
    label: Label = "label",
    debug: Debug = False,
) -> None:
    """Choose a threshold on labelled SCORES whose promise holds on new rows.

    Rates of one class: precision, recall, specificity, fpr, npv, false_discovery, cost; of
    predictions of any class: accuracy, coverage, abstention.

    Use rows that the model was not trained on. If the model was chosen on them, set --candidates.
    """
    if act is not None or clear is not None:
        others = {"--hold": hold, "--maximise": maximise, "--minimise": minimise, "--cost": cost}
        request = _parse_band_options(act, clear, confidence, others)
    else:
        goal = {"maximise": maximise, "minimise": minimise, "cost": cost}
        request = parse_targets(hold or [], confidence=confidence, **goal)
    if fitted_here and calibrator is None:
        raise InputError("--fitted-here requires a calibrator: name it with --calibrator.")
    from calibrant.cli.output import check_outputs
    from calibrant.cli.progress import progress
    from calibrant.scores.files import score_files
    from calibrant.workflows.choose_point import ThresholdOptions, choose

    files = score_files(scores)
    inputs = [*files, *([] if calibrator is None else [calibrator])]
    out = check_outputs(out, html, inputs, what="point")
    seen = (calibrator, fitted_here, candidates)
    choice = ThresholdOptions(files, request, *seen, positive, label, seed, largest_weight)
    outcome = choose(choice, progress=progress)
    _show(outcome, source=", ".join(scores), out=out, html=html, json=json)
    if not outcome.reached:
        raise typer.Exit(1)


def _parse_band_options(
    act: str | None, clear: str | None, confidence: str, others: dict[str, Any]
) -> TargetRequest:
    for flag, value in others.items():
        if value is not None:
            raise InputError(f"{flag} cannot be combined with --act and --clear: leave it out.")
    return parse_band(act, clear, confidence=confidence)


def _show(
    outcome: ThresholdResult, *, source: str, out: Path, html: Path | None, json: bool
) -> None:
    """Write the files and print the result."""
    interruption.check()
    command = f"calibrant decide OTHER --point {quote(str(out))} -o decisions.parquet"
    if outcome.positive is not None:
        command += f" --positive {quote(outcome.positive)}"
    if outcome.has_point:
        from calibrant.inputs.row_sketch import RowSketch
        from calibrant.workflows.point_file import write_point

        sketch = RowSketch.from_rows(outcome.rows.sketch_input).to_dict()
        rows = {"source": source, "fingerprint": outcome.rows.fingerprint, "sketch": sketch}
        write_point(outcome.result.to_dict(), out, calibrator=outcome.calibrator, chosen_on=rows)
    if html is not None:
        _write_page(outcome, html, source=source, out=out, command=command)
    if json:
        content = outcome.result.to_dict()
        content["notes"] = [*content.get("notes", []), *outcome.rows.notes]
        content["out"] = str(out) if outcome.has_point else None
        print_json(content if html is None else {**content, "report": str(html)})
        return
    _print_result(outcome, out, command)
    if html is not None:
        echo(f"The report is in {html}")


def _write_page(
    outcome: ThresholdResult, html: Path, *, source: str, out: Path, command: str
) -> None:
    """Write the HTML report, with a section for each point or failure."""
    from calibrant.reports.threshold.page import write_threshold_html

    rows = outcome.rows
    ((on, scores),) = rows.scores.items()
    next_step = {"out": str(out), "command": command} if outcome.has_point else {}
    write_threshold_html(
        outcome.result,
        html,
        source=source,
        notes=rows.notes,
        name="--html",
        labels=rows.codes,
        scores=scores,
        on=on,
        classes=rows.classes,
        weights=rows.weights,
        cost=outcome.request.cost,
        calibrated=outcome.calibrator is not None,
        **next_step,
    )


def _print_result(outcome: ThresholdResult, out: Path, command: str) -> None:
    from calibrant.formatting import printable
    from calibrant.reports.threshold.text import render_threshold

    layout: dict[str, Any] = {"width": width(), "color": color()}
    calibrated = outcome.calibrator is not None
    echo(
        render_threshold(outcome.result, notes=outcome.rows.notes, calibrated=calibrated, **layout)
    )
    if outcome.has_point:
        echo(f"\nThe point is in {out}")
        echo(f"Decide with it: {printable(command)}")
        return
    stays = f"; the previous content of {out} is unchanged" if out.exists() else ""
    echo(f"\nNo point was written{stays}.")
