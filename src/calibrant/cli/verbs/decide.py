"""`calibrant decide`: apply an operating point to a score file of any size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli.options import Debug, Json, Label, LonePositive
from calibrant.cli.output import echo, print_json, width
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.workflows.decide import DecisionCounts, PromiseCheck
    from calibrant.workflows.point_file import PointFile

NAME = "decide"
EXAMPLE = (
    "calibrant decide runs/demo/scores.csv --point runs/demo/point.json "
    "-o runs/demo/decisions.csv, after calibrant threshold"
)


def decide_command(
    scores: Annotated[
        list[str],
        typer.Argument(metavar="SCORES", help="csv, parquet, jsonl or npz: files, folder, glob."),
    ],
    point: Annotated[
        Path | None,
        typer.Option(
            "--point", metavar="POINT", help="Operating point, written by calibrant threshold."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="PATH", help="Output file for the decisions."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check the promise on the labels in SCORES.")
    ] = False,
    largest_weight: Annotated[
        float | None,
        typer.Option(
            "--largest-weight",
            metavar="W",
            help="With --check: upper bound of a row's weight in the sampling design.",
            show_default="the largest weight in SCORES",
        ),
    ] = None,
    json: Json = False,
    positive: LonePositive = None,
    label: Label = "label",
    debug: Debug = False,
) -> None:
    """Apply an operating point to each row of SCORES.

    Labels are not needed. Without -o the decisions are only counted.

    With --check, test the promise on the labels; exit 1 if it is broken.
    """
    if point is None:
        raise InputError("--point is missing: name a file written by calibrant threshold.")
    if largest_weight is not None and not check:
        raise InputError("--largest-weight requires --check: add it.")
    from calibrant.cli.progress import progress
    from calibrant.files.write_table import check_table_file
    from calibrant.scores.tables import ScoreTable
    from calibrant.workflows.decide import check_rows, decide_file, zero_replacement
    from calibrant.workflows.point_file import read_point

    if out is not None:
        check_table_file(out, name="-o")
    point_file = read_point(point)
    columns: dict[str, Any] = {"positive": positive, "label": label}
    table = ScoreTable(scores, zero_as=zero_replacement(point_file), **columns)
    if out is not None and out.resolve() in {file.resolve() for file in (point, *table.files)}:
        raise InputError(f"-o {out} is also an input file: choose another name.")
    promise_check = None
    if check:
        promise_check = check_rows(point_file, table.files, columns, largest_weight=largest_weight)
    counts = decide_file(point_file, table, out, progress=progress)
    _print_result(counts, point_file, promise_check, out, json=json)
    if promise_check is not None and promise_check.verdict == "broken":
        raise typer.Exit(1)


def _print_result(
    counts: DecisionCounts,
    point_file: PointFile,
    promise_check: PromiseCheck | None,
    out: Path | None,
    *,
    json: bool,
) -> None:
    if json:
        content: dict[str, Any] = {
            "schema": 1,
            "n": counts.rows,
            "decisions": dict(counts.decisions),
            "point": str(point_file.path),
            "out": None if out is None else str(out),
        }
        content |= {} if promise_check is None else {"check": promise_check.to_dict()}
        print_json({**content, "notes": list(counts.notes)} if counts.notes else content)
        return
    from calibrant.reports.threshold.text import render_decisions

    more = [
        *(promise_check.lines if promise_check else []),
        *(f"Note: {note}" for note in counts.notes),
    ]
    layout: dict[str, Any] = {"calibrated": point_file.calibration is not None, "width": width()}
    echo(render_decisions(point_file.result, counts.decisions, counts.rows, more=more, **layout))
    if out is None:
        echo("\nNothing was written: name a file with -o to get the decisions.")
    else:
        echo(f"\nThe decisions are in {out}")
