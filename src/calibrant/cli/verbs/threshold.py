"""`calibrant threshold`: the threshold that keeps a promise about precision, recall or cost."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import interruption
from calibrant.cli.options import Debug, Json, Label
from calibrant.cli.output import color, print_json, say, width
from calibrant.cli.targets import Asked, asked_of, band_of
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.workflows.choose_point import Found

__all__ = ["threshold"]

NAME = "threshold"
EXAMPLE = (
    "calibrant demo --scores, then calibrant threshold runs/demo/scores.csv "
    '--hold "item_defective: precision>=0.85" -o runs/demo/point.json'
)


def threshold(
    scores: Annotated[
        list[str],
        typer.Argument(metavar="SCORES", help="csv, parquet, jsonl or npz: files, folder, glob."),
    ],
    hold: Annotated[
        list[str] | None,
        typer.Option(
            "--hold",
            metavar="TARGET",
            help='What must be kept, like "spam: precision>=0.85"; may be repeated.',
        ),
    ] = None,
    maximise: Annotated[
        str | None,
        typer.Option(
            "--maximise",
            "--maximize",
            metavar="RATE",
            help="What to make large.",
            show_default="recall where precision is held, precision where recall is",
        ),
    ] = None,
    minimise: Annotated[
        str | None,
        typer.Option(
            "--minimise", "--minimize", metavar="RATE", help="What to make small, like cost."
        ),
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option("--cost", metavar="fp=1,fn=5", help="What wrong decisions cost."),
    ] = None,
    act: Annotated[
        str | None,
        typer.Option(
            "--act", metavar="TARGET", help='For a band: of rows acted on, like "precision>=0.9".'
        ),
    ] = None,
    clear: Annotated[
        str | None,
        typer.Option("--clear", metavar="TARGET", help='And of rows cleared, like "npv>=0.99".'),
    ] = None,
    confidence: Annotated[
        str,
        typer.Option(
            "--confidence",
            metavar="SHARE",
            envvar="CALIBRANT_CONFIDENCE",
            help="Of the promise; none: promise nothing.",
        ),
    ] = "0.95",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PATH", help="Where to put the point.")
    ] = None,
    json: Json = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PATH", help="Write a report page.")
    ] = None,
    candidates: Annotated[
        int,
        typer.Option(
            "--candidates", metavar="M", min=1, help="Models compared on these rows, this one too."
        ),
    ] = 1,
    calibrator: Annotated[
        Path | None,
        typer.Option("--calibrator", metavar="FILE", help="Calibrate the scores with this first."),
    ] = None,
    fitted_here: Annotated[
        bool, typer.Option("--fitted-here", help="That calibrator was fitted on these very rows.")
    ] = False,
    largest_weight: Annotated[
        float | None,
        typer.Option(
            "--largest-weight",
            metavar="W",
            help="The most a row could weigh by the sampling design.",
            show_default="the largest weight in SCORES",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option("--positive", metavar="NAME", help="The class to act on, or of a lone prob."),
    ] = None,
    seed: Annotated[
        int,
        typer.Option("--seed", min=0, envvar="CALIBRANT_SEED", help="Orders rows of equal score."),
    ] = 0,
    label: Label = "label",
    debug: Debug = False,
) -> None:
    """Choose the threshold on labelled SCORES that keeps a promise on new rows.

    Rates: precision, recall, specificity, fpr, npv, false_discovery, cost;

    accuracy, coverage and abstention of predictions of any class.

    Use rows that the model was not trained on. If it was chosen on them, see --candidates.
    """
    if act is not None or clear is not None:
        given = {"--hold": hold, "--maximise": maximise, "--minimise": minimise, "--cost": cost}
        asked = _band(act, clear, confidence, given)
    else:
        goal = {"maximise": maximise, "minimise": minimise, "cost": cost}
        asked = asked_of(hold or [], confidence=confidence, **goal)
    if fitted_here and calibrator is None:
        raise InputError("--fitted-here is about a calibrator: name it with --calibrator.")
    from calibrant.cli.json_output import checked_outputs
    from calibrant.scores.files import score_files
    from calibrant.workflows.choose_point import Choice, choose

    files = score_files(scores)
    read = [*files, *([] if calibrator is None else [calibrator])]
    out = checked_outputs(out, html, read, what="point")
    seen = (calibrator, fitted_here, candidates)
    choice = Choice(files, asked, *seen, positive, label, seed, largest_weight)
    found = choose(choice)
    _show(found, source=", ".join(scores), out=out, html=html, json=json)
    if not found.reached:
        raise typer.Exit(1)


def _band(act: str | None, clear: str | None, confidence: str, others: dict[str, Any]) -> Asked:
    for flag, value in others.items():
        if value is not None:
            raise InputError(
                f"{flag} does not go with --act and --clear, which are a band's only targets: "
                "leave it out."
            )
    return band_of(act, clear, confidence=confidence)


def _show(found: Found, *, source: str, out: Path, html: Path | None, json: bool) -> None:
    """Write the files and print the result."""
    interruption.check()
    command = f"calibrant decide OTHER --point {quote(str(out))} -o decisions.parquet"
    if found.positive is not None:
        command += f" --positive {quote(found.positive)}"
    if found.has_point:
        from calibrant.inputs.row_sketch import RowSketch
        from calibrant.workflows.point_file import write_point

        sketch = RowSketch.from_rows(found.rows.sketched).to_dict()
        rows = {"source": source, "fingerprint": found.rows.fingerprint, "sketch": sketch}
        write_point(found.result.to_dict(), out, calibrator=found.calibrator, chosen_on=rows)
    if html is not None:
        _write_page(found, html, source=source, out=out, command=command)
    if json:
        content = found.result.to_dict()
        content["notes"] = [*content.get("notes", []), *found.rows.notes]
        content["out"] = str(out) if found.has_point else None
        print_json(content if html is None else {**content, "report": str(html)})
        return
    _say(found, out, command)
    if html is not None:
        say(f"The report is in {html}")


def _write_page(found: Found, html: Path, *, source: str, out: Path, command: str) -> None:
    """Write the page, with a section for each point or failure."""
    from calibrant.reports.threshold.page import write_threshold_html

    rows = found.rows
    ((on, scores),) = rows.scores.items()
    place = {"out": str(out), "command": command} if found.has_point else {}
    write_threshold_html(
        found.result,
        html,
        source=source,
        notes=rows.notes,
        name="--html",
        labels=rows.codes,
        scores=scores,
        on=on,
        classes=rows.classes,
        weights=rows.weights,
        cost=found.asked.cost,
        **place,
    )


def _say(found: Found, out: Path, command: str) -> None:
    from calibrant.formatting import printable
    from calibrant.reports.threshold.text import render_threshold

    layout: dict[str, Any] = {"width": width(), "color": color()}
    calibrated = found.calibrator is not None
    say(render_threshold(found.result, notes=found.rows.notes, calibrated=calibrated, **layout))
    if found.has_point:
        say(f"\nThe point is in {out}")
        say(f"Decide with it: {printable(command)}")
        return
    stays = f"; what stood in {out} before still stands there" if out.exists() else ""
    say(f"\nNo point was written{stays}.")
