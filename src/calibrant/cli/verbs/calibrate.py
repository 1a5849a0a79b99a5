"""`calibrant calibrate`: fit a calibrator or let it choose one, judge it, save it, apply it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import interruption
from calibrant.cli.options import Debug, Json, Label, Positive, Seed
from calibrant.cli.output import color, print_json, say, width
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.calibrators import Calibrator
    from calibrant.reports.calibration.result import CalibrationResult
    from calibrant.scores import Scores

__all__ = ["calibrate"]

NAME = "calibrate"
EXAMPLE = (
    "calibrant demo --scores, then "
    "calibrant calibrate runs/demo/scores.csv -o runs/demo/calibrator.json"
)


class ScoreName(StrEnum):
    """What decides between calibrators."""

    nll = "nll"
    brier = "brier"


def calibrate(
    scores: Annotated[
        list[str],
        typer.Argument(metavar="SCORES", help="csv, parquet, jsonl or npz: files, folder, glob."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="PATH", help="Where to put the calibrator, or the new scores."
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="NAME[:KEY=VALUE,...]",
            help="auto, or a method like temperature.",
            show_default="auto",
        ),
    ] = None,
    apply: Annotated[
        Path | None,
        typer.Option(
            "--apply", metavar="CALIBRATOR", help="Apply this calibrator instead of fitting one."
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            "--test", metavar="OTHER", help="Judge on these rows.", show_default="cross-fitting"
        ),
    ] = None,
    json: Json = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PATH", help="Write a report page.")
    ] = None,
    score: Annotated[
        ScoreName | None,
        typer.Option("--score", help="What has to become better.", show_default="nll"),
    ] = None,
    positive: Positive = None,
    seed: Seed = 0,
    label: Label = "label",
    debug: Debug = False,
) -> None:
    """Fit a calibrator on SCORES and tell what it does to their probabilities.

    With --apply: calibrate the probabilities in SCORES, which need no labels then.

    Fit on rows that the model was not trained on.
    """
    columns = {"positive": positive, "label": label}
    if apply is not None:
        _refuse_with_apply({"--method": method, "--test": test, "--html": html, "--score": score})
        from calibrant.workflows.apply_calibrator import apply_file

        apply_file(apply, scores, out, columns, json=json)
        return
    from calibrant.cli.json_output import checked_outputs
    from calibrant.cli.methods import method_of
    from calibrant.scores.files import score_files

    decides = "nll" if score is None else score.value
    calibrator = method_of("auto" if method is None else method, score=decides, seed=seed)
    files = score_files(scores)
    others = [] if test is None else score_files(test)
    _check_judges(files, others)
    out = checked_outputs(out, html, [*files, *others], what="calibrator")
    result = fit_files(calibrator, files, others, columns, score=decides, seed=seed)
    command = f"calibrant calibrate --apply {quote(str(out))} OTHER -o calibrated.parquet"
    if positive is not None:
        command += f" --positive {quote(positive)}"
    _show(result, command, source=", ".join(scores), out=out, html=html, json=json)


def fit_files(
    calibrator: Calibrator,
    files: list[Path],
    others: list[Path],
    columns: dict[str, Any],
    *,
    score: str,
    seed: int,
) -> CalibrationResult:
    """Fit on score files, and judge on other ones or by cross-fitting."""
    from calibrant.cli.progress import progress
    from calibrant.inputs import check_two_classes
    from calibrant.reports.calibration.result import CalibrationResult
    from calibrant.scores import read_scores
    from calibrant.workflows.judge_calibrator import counting_rows, rows_of

    with progress("calibrating"):
        rows = counting_rows(read_scores(files, logits=True, **columns))
        check_two_classes(_class_counts(rows), rows.classes)
        judges = _judges(others, rows, files, columns)
        _fit(calibrator, rows_of(rows))
        interruption.check()
        chosen: Calibrator = calibrator.chosen_ if hasattr(calibrator, "chosen_") else calibrator
        judgement, why_not = _judged(calibrator, chosen, rows, judges, others, seed)
    return CalibrationResult(
        saved={**chosen.to_dict(), "zero_as": rows.zero_as} if rows.floored else chosen.to_dict(),
        requested=calibrator.method,
        n=rows.n,
        score=score,
        judgement=judgement,
        why_not=why_not,
        choice=getattr(calibrator, "comparison_", None),
        notes=(*rows.notes, *_notes(chosen, rows)),
    )


def _fit(calibrator: Calibrator, rows: Any) -> None:
    """Fit; a method that breaks down over its settings was given wrong ones."""
    try:
        calibrator.fit_rows(rows)
    except (TypeError, ValueError) as error:
        usual = type(calibrator)().get_params(deep=False)
        if isinstance(error, InputError) or calibrator.get_params(deep=False) == usual:
            raise
        raise InputError(
            f"--method {calibrator.method} cannot work with these settings ({error}): check them."
        ) from error


def _judged(
    asked: Calibrator,
    chosen: Calibrator,
    rows: Scores,
    judges: Scores | None,
    others: list[Path],
    seed: int,
) -> tuple[Any, str | None]:
    """Judge before and after, or say why that cannot be done."""
    from calibrant.workflows.judge_calibrator import judged_by_crossfit, judged_on

    if judges is not None:
        source = ", ".join(str(file) for file in others)
        return judged_on(judges, chosen, source=source, seed=seed), None
    try:
        # A choice is part of what is fitted: it is made again without the rows that judge it.
        fitted = chosen if chosen.method == "identity" else asked
        return judged_by_crossfit(rows, fitted, seed=seed), None
    except InputError:
        return None, "there are too few rows to hold some of them back (--test names other rows)."


def _judges(
    others: list[Path], rows: Scores, files: list[Path], columns: dict[str, Any]
) -> Scores | None:
    """Read the rows that judge, with their classes in the order of the fitted ones."""
    from calibrant.inputs import check_two_classes
    from calibrant.scores import read_scores
    from calibrant.scores.checks import clip_logits
    from calibrant.scores.classes import reorder_classes
    from calibrant.workflows.judge_calibrator import counting_rows

    if not others:
        return None
    names = (str(others[0]), str(files[0]))
    read = counting_rows(read_scores(others, logits=True, **columns))
    if rows.floored and read.logits is not None:  # what 0 means was settled by the fitted rows
        read = replace(read, logits=clip_logits(read.logits, rows.zero_as))
    found = reorder_classes(read, rows.classes, files=names)
    check_two_classes(_class_counts(found), found.classes)
    return found


def _class_counts(scores: Scores) -> Any:
    import numpy as np

    return np.bincount(scores.labels, minlength=len(scores.classes))


def _notes(calibrator: Calibrator, rows: Scores) -> list[str]:
    notes = []
    if getattr(calibrator, "hit_bound_", False):
        notes.append(
            f"{calibrator.method} ended at the bound of what it may try, so nothing within fits; "
            "look at the scores before using it."
        )
    absent = [rows.classes[k] for k, n in enumerate(_class_counts(rows)) if n == 0]
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        notes.append(f"No row has the label '{absent[0]}'{more}: nothing is known about it.")
    return notes


def _refuse_with_apply(given: dict[str, Any]) -> None:
    for flag, value in given.items():
        if value is not None:
            raise InputError(f"{flag} is for fitting a calibrator: leave it out with --apply.")


def _check_judges(files: Iterable[Path], others: Iterable[Path]) -> None:
    """Refuse to judge on what is fitted on."""
    fitted = {file.resolve() for file in files}
    twice = next((file for file in others if file.resolve() in fitted), None)
    if twice is not None:
        raise InputError(
            f"--test {twice} is also what is fitted on: judge on rows that were not, or leave "
            "--test out."
        )


def _show(
    result: CalibrationResult,
    command: str,
    *,
    source: str,
    out: Path,
    html: Path | None,
    json: bool,
) -> None:
    """Write the files and print the result; `command` applies the calibrator."""
    from calibrant.formatting import printable
    from calibrant.reports.calibration.text import render_calibration
    from calibrant.workflows.calibrator_file import write_calibrator

    interruption.check()
    write_calibrator(result.saved, out)
    if html is not None:
        from calibrant.reports.calibration.page import write_calibration_html

        named = {"source": source, "out": str(out), "command": command}
        write_calibration_html(result, html, **named, name="--html")
    if json:
        report = {} if html is None else {"report": str(html)}
        print_json({**result.to_dict(), "out": str(out), **report})
        return
    say(render_calibration(result, width=width(), color=color()))
    say(f"\nThe calibrator{result.learned and f' ({result.learned})'} is in {out}")
    say(f"Apply it: {printable(command)}")
    if html is not None:
        say(f"The report is in {html}")
