"""`calibrant predict`: score a file of any size with a bundle, or with a service that has one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.cli.options import Debug, Json, LonePositive
from calibrant.cli.output import print_json, say, width
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.bundle import Bundle
    from calibrant.cli.remote_predicting import Service
    from calibrant.workflows.write_predictions import Predicted

__all__ = ["predict"]

NAME = "predict"
EXAMPLE = (
    "calibrant predict runs/demo/bundle runs/demo/golden.csv -o predictions.csv, after "
    "calibrant demo"
)

_SCHEMES = ("http://", "https://")
_SHOWN = 8
"""Classes that are counted for people; `--json` has all."""


def predict(
    bundle: Annotated[
        str,
        typer.Argument(
            metavar="BUNDLE",
            help="A folder that train, demo or pack wrote, or the URL of a service.",
        ),
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
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="For a URL: a key of the service.",
            show_default="CALIBRANT_KEY",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option("--unit", metavar="COLUMN", help="For a URL: whom a row is about."),
    ] = None,
    use_case: Annotated[
        str | None,
        typer.Option("--use-case", metavar="NAME", help="For a URL: what it is used for."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Say for each row of DATA how probable each class is, and whether to act on it.

    DATA has the columns that the model was trained on, or holds images where it reads those.

    For a bundle without a model it is a score file.

    A URL is that of `calibrant serve`: the rows go there, and their predictions are on record.

    Without -o the rows are only counted.
    """
    from calibrant.files.write_table import check_table_file

    if out is not None:
        check_table_file(out, name="-o")
    if bundle.lower().startswith(_SCHEMES):
        from calibrant.cli.remote_predicting import Service

        service = Service.at(bundle, key, use_case, point)
        done, who = _asked(service, data, out, unit=unit, text=text, positive=positive)
    else:
        for flag, given in (("--key", key), ("--unit", unit), ("--use-case", use_case)):
            if given is not None:
                raise InputError(f"{flag} is for the URL of a service, got a folder: leave it out.")
        done, who = _scored(Path(bundle), data, out, point=point, text=text, positive=positive)
    _tell(done, who, out, json=json)


def _scored(
    folder: Path,
    data: str,
    out: Path | None,
    *,
    point: int | None,
    text: str | None,
    positive: str | None,
) -> tuple[Predicted, dict[str, str]]:
    """Let a bundle speak that is here."""
    from calibrant.bundle import load_bundle
    from calibrant.workflows.bundle_rows import rows_for
    from calibrant.workflows.predict import predict_file

    loaded = load_bundle(folder)
    _check_point(point, len(loaded.points), f"the bundle {loaded.path}")
    rows = rows_for(loaded, data, text=text, positive=positive)
    _check_place(out, [*rows.files, *_files(loaded)])
    return predict_file(loaded, rows, out, point=point), {"bundle": str(loaded.path)}


def _asked(
    service: Service,
    data: str,
    out: Path | None,
    *,
    unit: str | None,
    text: str | None,
    positive: str | None,
) -> tuple[Predicted, dict[str, str]]:
    """Let a bundle speak that a service has."""
    from calibrant.cli.remote_predicting import predict_remotely
    from calibrant.cli.remote_rows import remote_rows

    served = service.served
    _check_point(service.point, len(served.points), f"the bundle of {service.url}")
    rows = remote_rows(served, data, text=text, positive=positive)
    _check_place(out, rows.files)
    done = predict_remotely(service, rows, data, out, unit=unit)
    return done, {"bundle": service.url, "bundle_hash": served.hash}


def _check_point(point: int | None, points: int, where: str) -> None:
    if point is None or point in range(points):
        return
    if not points:
        raise InputError(f"--point {point}: {where} has no operating point: leave --point out.")
    raise InputError(f"--point must be a position from 0 to {points - 1}, got {point}.")


def _files(bundle: Bundle) -> list[Path]:
    from calibrant.bundle.files import MANIFEST

    return [bundle.path / name for name in (MANIFEST, *bundle.manifest["files"])]


def _check_place(out: Path | None, read: list[Path]) -> None:
    if out is not None and out.resolve() in {file.resolve() for file in read}:
        raise InputError(f"-o {out} is a file that is read: choose another name.")


def _tell(done: Predicted, who: dict[str, str], out: Path | None, *, json: bool) -> None:
    if json:
        content = {
            "schema": 1,
            "n": done.rows,
            "decisions": done.decisions,
            "predicted": done.predicted,
            "out_of_scope": done.out_of_scope,
            **who,
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
    from calibrant.formatting import format_count, percent, printable, quote_name

    def share(n: int) -> str:
        return f"{n:,} ({percent(n / done.rows)})"

    lines = [f"{format_count(done.rows, 'row')}."]
    if done.decisions is None:
        lines.append("No decisions: the bundle has no operating point, so probabilities only.")
    else:
        acted, cleared, left = (share(done.decisions[w]) for w in ("act", "clear", "abstain"))
        lines.append(f"Acted on: {acted}. Cleared: {cleared}. For a person: {left}.")
    if done.out_of_scope is not None:
        lines.append(f"Out of scope, and so for a person: {share(done.out_of_scope)}.")
    most = sorted(done.predicted.items(), key=lambda item: -item[1])
    shown = [f"{quote_name(of)} {share(n)}" for of, n in most[:_SHOWN]]
    shown += [f"and {len(most) - _SHOWN} more"] if len(most) > _SHOWN else []
    lines.append(f"Most probable: {', '.join(shown)}.")
    return lines + [printable(f"Note: {note}") for note in done.notes]
