"""`calibrant decide`: apply an operating point to a score file of any size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli.options import Debug, Json, Label, LonePositive
from calibrant.cli.output import print_json, say, width
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.workflows.check_point import Checked
    from calibrant.workflows.decide import Decided
    from calibrant.workflows.point_file import PointFile

__all__ = ["decide"]

NAME = "decide"
EXAMPLE = (
    "calibrant decide runs/demo/scores.csv --point runs/demo/point.json "
    "-o runs/demo/decisions.csv, after calibrant threshold"
)


def decide(
    scores: Annotated[
        list[str],
        typer.Argument(metavar="SCORES", help="csv, parquet, jsonl or npz: files, folder, glob."),
    ],
    point: Annotated[
        Path | None,
        typer.Option("--point", metavar="POINT", help="A file that calibrant threshold wrote."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PATH", help="Where to put the decisions.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Judge the promise by the labels in SCORES.")
    ] = False,
    largest_weight: Annotated[
        float | None,
        typer.Option(
            "--largest-weight",
            metavar="W",
            help="With --check: the most a row could weigh by the sampling design.",
            show_default="the largest weight in SCORES",
        ),
    ] = None,
    json: Json = False,
    positive: LonePositive = None,
    label: Label = "label",
    debug: Debug = False,
) -> None:
    """Say for each row of SCORES whether to act on it, by a point that was chosen before.

    Labels are not needed. Without -o the rows are only counted.

    With --check: say by the labels whether the promise was kept; exit 1 if it was broken.
    """
    if point is None:
        raise InputError("--point is missing: name a file that calibrant threshold wrote.")
    if largest_weight is not None and not check:
        raise InputError("--largest-weight is about checking a promise: give --check too.")
    from calibrant.files.write_table import check_table_file
    from calibrant.scores.tables import ScoreTable
    from calibrant.workflows.check_point import check_rows
    from calibrant.workflows.decide import decide_file, zero_as
    from calibrant.workflows.point_file import read_point

    if out is not None:
        check_table_file(out, name="-o")
    loaded = read_point(point)
    columns: dict[str, Any] = {"positive": positive, "label": label}
    table = ScoreTable(scores, zero_as=zero_as(loaded), **columns)
    if out is not None and out.resolve() in {file.resolve() for file in (point, *table.files)}:
        raise InputError(f"-o {out} is a file that is read: choose another name.")
    found = None
    if check:
        found = check_rows(loaded, table.files, columns, largest_weight=largest_weight)
    _tell(decide_file(loaded, table, out), loaded, found, out, json=json)
    if found is not None and found.verdict == "broken":
        raise typer.Exit(1)


def _tell(
    done: Decided, loaded: PointFile, found: Checked | None, out: Path | None, *, json: bool
) -> None:
    if json:
        content: dict[str, Any] = {
            "schema": 1,
            "n": done.rows,
            "decisions": dict(done.decisions),
            "point": str(loaded.path),
            "out": None if out is None else str(out),
        }
        content |= {} if found is None else {"check": found.to_dict()}
        print_json({**content, "notes": list(done.notes)} if done.notes else content)
        return
    from calibrant.reports.threshold.text import render_decisions

    more = [*(found.lines if found else []), *(f"Note: {note}" for note in done.notes)]
    layout: dict[str, Any] = {"calibrated": loaded.calibration is not None, "width": width()}
    say(render_decisions(loaded.result, done.decisions, done.rows, more=more, **layout))
    if out is None:
        say("\nNothing was written: name a file with -o to get the decisions.")
    else:
        say(f"\nThe decisions are in {out}")
