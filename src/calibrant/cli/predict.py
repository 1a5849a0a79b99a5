"""`calibrant predict`: score a file of any size with a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.cli.options import Debug, Json, LonePositive
from calibrant.cli.output import print_json, say, width
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.bundle import Bundle
    from calibrant.cli.predicting import Predicted

__all__ = ["predict"]

NAME = "predict"
EXAMPLE = (
    "calibrant predict runs/demo/bundle runs/demo/golden.csv -o predictions.csv, after "
    "calibrant demo"
)

_SHOWN = 8
"""Classes that are counted for people; `--json` has all."""


def predict(
    bundle: Annotated[
        Path, typer.Argument(metavar="BUNDLE", help="A folder that train, demo or pack wrote.")
    ],
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="csv, parquet or jsonl: a file, folder or glob; images: a folder or npz.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="PATH", help="Where to put the predictions."),
    ] = None,
    json: Json = False,
    point: Annotated[
        int | None,
        typer.Option(
            "--point",
            metavar="N",
            help="The one operating point that decides, from 0.",
            show_default="the first of each class",
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            "--text",
            metavar="COLUMN",
            help="The column with the texts.",
            show_default="as in training",
        ),
    ] = None,
    positive: LonePositive = None,
    debug: Debug = False,
) -> None:
    """Say for each row of DATA how probable each class is, and whether to act on it.

    DATA has the columns that the model was trained on, or holds images where it reads those.

    For a bundle without a model it is a score file.

    Without -o the rows are only counted.
    """
    from calibrant.bundle import load_bundle
    from calibrant.cli.bundle_rows import rows_for
    from calibrant.cli.predicting import predict_file
    from calibrant.data.table_files import check_table_file

    if out is not None:
        check_table_file(out, name="-o")
    loaded = load_bundle(bundle)
    _check_point(loaded, point)
    rows = rows_for(loaded, data, text=text, positive=positive)
    _check_place(out, [*rows.files, *_files(loaded)])
    _tell(predict_file(loaded, rows, out, point=point), loaded, out, json=json)


def _check_point(bundle: Bundle, point: int | None) -> None:
    if point is None or point in range(len(bundle.points)):
        return
    if not bundle.points:
        raise InputError(
            f"--point {point}: the bundle {bundle.path} has no operating point: leave --point out."
        )
    last = len(bundle.points) - 1
    raise InputError(f"--point must be a position from 0 to {last}, got {point}.")


def _files(bundle: Bundle) -> list[Path]:
    from calibrant.bundle.files import MANIFEST

    return [bundle.path / name for name in (MANIFEST, *bundle.manifest["files"])]


def _check_place(out: Path | None, read: list[Path]) -> None:
    if out is not None and out.resolve() in {file.resolve() for file in read}:
        raise InputError(f"-o {out} is a file that is read: choose another name.")


def _tell(done: Predicted, bundle: Bundle, out: Path | None, *, json: bool) -> None:
    if json:
        content = {
            "schema": 1,
            "n": done.rows,
            "decisions": done.decisions,
            "predicted": done.predicted,
            "out_of_scope": done.out_of_scope,
            "bundle": str(bundle.path),
            "out": None if out is None else str(out),
        }
        print_json({**content, "notes": list(done.notes)} if done.notes else content)
        return
    from rich.text import Text

    from calibrant.reports.text_tables import to_text

    say(to_text(map(Text, _lines(done)), width(), color=False))
    if out is None:
        say("\nNothing was written: name a file with -o to get the predictions.")
    else:
        say(f"\nThe predictions are in {out}")


def _lines(done: Predicted) -> list[str]:
    from calibrant.reports.words import counted, percent, printable, quoted

    def share(n: int) -> str:
        return f"{n:,} ({percent(n / done.rows)})"

    lines = [f"{counted(done.rows, 'row')}."]
    if done.decisions is None:
        lines.append("No decisions: the bundle has no operating point, so probabilities only.")
    else:
        acted, cleared, left = (share(done.decisions[w]) for w in ("act", "clear", "abstain"))
        lines.append(f"Acted on: {acted}. Cleared: {cleared}. For a person: {left}.")
    if done.out_of_scope is not None:
        lines.append(f"Out of scope, and so for a person: {share(done.out_of_scope)}.")
    most = sorted(done.predicted.items(), key=lambda item: -item[1])
    shown = [f"{quoted(of)} {share(n)}" for of, n in most[:_SHOWN]]
    shown += [f"and {len(most) - _SHOWN} more"] if len(most) > _SHOWN else []
    lines.append(f"Most probable: {', '.join(shown)}.")
    return lines + [printable(f"Note: {note}") for note in done.notes]
