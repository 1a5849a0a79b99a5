"""`calibrant predict`: score a file with a bundle or a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli.options import Debug, Json, LonePositive
from calibrant.cli.output import echo, print_json, width
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.bundle import Bundle
    from calibrant.cli.remote_predict import RemoteService
    from calibrant.workflows.predict import PredictionSummary

NAME = "predict"
EXAMPLE = (
    "calibrant predict runs/demo/bundle runs/demo/golden.csv -o predictions.csv, after "
    "calibrant demo"
)

_SCHEMES = ("http://", "https://")
_MOST_REASONS = 100  # As in requests to a service
_SHOWN = 8  # Classes listed in text output; `--json` has all


def predict_command(
    bundle: Annotated[
        str,
        typer.Argument(
            metavar="BUNDLE",
            help="Bundle written by train, demo or pack, or the URL of a service.",
        ),
    ],
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="csv, parquet or jsonl: file, folder or glob; images: folder or npz.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="PATH", help="Output file for the predictions."),
    ] = None,
    json: Json = False,
    point: Annotated[
        int | None,
        typer.Option(
            "--point",
            metavar="N",
            help="Index of the operating point to apply.",
            show_default="the first of each class",
        ),
    ] = None,
    reasons: Annotated[
        int,
        typer.Option(
            "--reasons",
            metavar="N",
            min=0,
            max=_MOST_REASONS,
            help="Add the N strongest parts of each row, if the model gives them.",
            show_default="none",
        ),
    ] = 0,
    text: Annotated[
        str | None,
        typer.Option(
            "--text",
            metavar="COLUMN",
            help="Text column.",
            show_default="as in training",
        ),
    ] = None,
    positive: LonePositive = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="For a URL: API key.",
            show_default="CALIBRANT_KEY",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="COLUMN",
            help="For a URL: column that identifies the unit, such as a customer.",
        ),
    ] = None,
    use_case: Annotated[
        str | None,
        typer.Option("--use-case", metavar="NAME", help="For a URL: use case of the predictions."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Predict class probabilities and a decision for each row of DATA.

    DATA has the columns the model was trained on, or images; for a bundle without a model it is a
    score file.

    A URL is that of calibrant serve, which also records the predictions.

    Without -o the predictions are only counted.
    """
    from calibrant.files.write_table import check_table_file

    if out is not None:
        check_table_file(out, name="-o")
    if bundle.lower().startswith(_SCHEMES):
        from calibrant.cli.remote_predict import RemoteService

        service = RemoteService.connect(bundle, key, use_case, point, reasons)
        summary, source = _predict_with_service(
            service, data, out, unit=unit, text=text, positive=positive
        )
    else:
        for flag, value in (("--key", key), ("--unit", unit), ("--use-case", use_case)):
            if value is not None:
                raise InputError(f"{flag} needs the URL of a service, got a folder: leave it out.")
        summary, source = _predict_with_bundle(
            Path(bundle), data, out, point=point, reasons=reasons, text=text, positive=positive
        )
    _print_result(summary, source, out, json=json)


def _predict_with_bundle(
    folder: Path,
    data: str,
    out: Path | None,
    *,
    point: int | None,
    reasons: int,
    text: str | None,
    positive: str | None,
) -> tuple[PredictionSummary, dict[str, str]]:
    """Predict with a bundle on disk."""
    from calibrant.bundle import load_bundle
    from calibrant.cli.progress import progress
    from calibrant.workflows.bundle_rows import open_rows
    from calibrant.workflows.predict import check_gives_reasons, predict_file

    bundle = load_bundle(folder)
    _check_point(point, len(bundle.points), f"the bundle {bundle.path}")
    check_gives_reasons(bundle, reasons)
    rows = open_rows(bundle, data, text=text, positive=positive)
    _check_out(out, [*rows.files, *_files(bundle)])
    summary = predict_file(bundle, rows, out, point=point, reasons=reasons, progress=progress)
    return summary, {"bundle": str(bundle.path)}


def _predict_with_service(
    service: RemoteService,
    data: str,
    out: Path | None,
    *,
    unit: str | None,
    text: str | None,
    positive: str | None,
) -> tuple[PredictionSummary, dict[str, str]]:
    """Predict with a service."""
    from calibrant.cli.remote_predict import open_remote_rows, predict_remotely

    served = service.served
    _check_point(service.point, len(served.points), f"the bundle of {service.url}")
    if service.reasons and served.gives_reasons is False:
        raise InputError(
            f"--reasons {service.reasons}: the model of {service.url} gives no reasons: leave "
            "--reasons out, or serve boosted trees, n-grams or a linear model."
        )
    rows = open_remote_rows(served, data, text=text, positive=positive)
    _check_out(out, rows.files)
    summary = predict_remotely(service, rows, data, out, unit=unit)
    return summary, {"bundle": service.url, "bundle_hash": served.hash}


def _check_point(point: int | None, points: int, where: str) -> None:
    if point is None or point in range(points):
        return
    if not points:
        raise InputError(f"--point {point}: {where} has no operating point: leave --point out.")
    raise InputError(f"--point must be an index from 0 to {points - 1}, got {point}.")


def _files(bundle: Bundle) -> list[Path]:
    from calibrant.bundle.files import MANIFEST

    return [bundle.path / name for name in (MANIFEST, *bundle.manifest["files"])]


def _check_out(out: Path | None, inputs: list[Path]) -> None:
    if out is not None and out.resolve() in {file.resolve() for file in inputs}:
        raise InputError(f"-o {out} is also an input file: choose another name.")


def _print_result(
    summary: PredictionSummary, source: dict[str, str], out: Path | None, *, json: bool
) -> None:
    if json:
        content = {
            "schema": 1,
            "n": summary.rows,
            "decisions": summary.decisions,
            "predicted": summary.predicted,
            "out_of_scope": summary.out_of_scope,
            "rules": list(summary.rules),
            **source,
            "out": None if out is None else str(out),
        }
        print_json({**content, "notes": list(summary.notes)} if summary.notes else content)
        return
    from rich.text import Text

    from calibrant.reports.text_tables import to_text

    echo(to_text(map(Text, _lines(summary)), width(), color=False))
    if out is None:
        echo("\nNothing was written: name a file with -o to get the predictions.")
    else:
        echo(f"\nThe predictions are in {out}")


def _lines(summary: PredictionSummary) -> list[str]:
    from calibrant.formatting import format_count, percent, printable, quote_name

    def share(n: int) -> str:
        return f"{n:,} ({percent(n / summary.rows)})"

    lines = [f"{format_count(summary.rows, 'row')}."]
    if summary.decisions is None:
        lines.append("No decisions: the bundle has no operating point, so probabilities only.")
    else:
        acted, cleared, left = (share(summary.decisions[w]) for w in ("act", "clear", "abstain"))
        lines.append(f"Acted on: {acted}. Cleared: {cleared}. For a person: {left}.")
        lines += _rule_lines(summary.rules)
    if summary.out_of_scope is not None:
        lines.append(f"Out of scope, and so for a person: {share(summary.out_of_scope)}.")
    most = sorted(summary.predicted.items(), key=lambda item: -item[1])
    shown = [f"{quote_name(of)} {share(n)}" for of, n in most[:_SHOWN]]
    shown += [f"and {len(most) - _SHOWN} more"] if len(most) > _SHOWN else []
    lines.append(f"Most probable: {', '.join(shown)}.")
    return lines + [printable(f"Note: {note}") for note in summary.notes]


def _rule_lines(rules: Sequence[Mapping[str, Any]]) -> list[str]:
    """Describe the rules, and say where their scores are not the probabilities of the output."""
    from calibrant.bundle.decision_rules import describe_rule

    lines = [f"{describe_rule(rule)}." for rule in rules[:_SHOWN]]
    lines += [f"And {len(rules) - _SHOWN} more rules."] if len(rules) > _SHOWN else []
    if not all(rule["same_scale"] for rule in rules):
        lines.append("The decision score is the model's own; the columns prob_ are calibrated.")
    return lines
