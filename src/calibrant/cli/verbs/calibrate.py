"""`calibrant calibrate`: fit or choose a calibrator, evaluate, save and apply it."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import interruption
from calibrant.cli.options import Debug, Json, Label, Positive, Seed
from calibrant.cli.output import color, echo, print_json, width
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.calibrators import Calibrator
    from calibrant.reports.calibration.result import CalibrationResult
    from calibrant.scores import Scores
    from calibrant.workflows.calibrator_file import AppliedCalibrator

_PYTHON_ONLY = ("chain",)  # built from other calibrators

_KINDS: dict[type, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "a word"),
}


def parse_method(text: str, *, score: str, seed: int) -> Calibrator:
    """Return the unfitted calibrator that `--method` names."""
    from calibrant.calibrators import list_methods
    from calibrant.calibrators.choice.auto import AutoCalibrator

    known: dict[str, type[Calibrator]] = {AutoCalibrator.method: AutoCalibrator, **list_methods()}
    name, settings = split_method(text)
    if name in _PYTHON_ONLY:
        raise InputError(
            f"--method {name} is only available in Python, as first.then(second): name one method."
        )
    choices = sorted(set(known) - set(_PYTHON_ONLY))
    if name not in choices:
        raise InputError(
            f"--method {name}: unknown method{_suggest(name, choices)}: choose one of "
            f"{', '.join(choices)}."
        )
    cls = known[name]
    for key, value in settings.items():
        _check_setting(name, key, value, inspect.signature(cls).parameters)
    if isinstance(settings.get("candidates"), str):
        settings["candidates"] = [settings["candidates"]]
    defaults = {"score": score, "seed": seed} if cls is AutoCalibrator else {}
    return cls(**{**defaults, **settings})


def _check_setting(name: str, key: str, value: Any, known: Mapping[str, inspect.Parameter]) -> None:
    """Refuse an unknown setting, or one whose type differs from the default."""
    if key not in known:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise InputError(
            f"--method {name} has no setting '{key}'{_suggest(key, list(known))}: {has}."
        )
    types, words = _KINDS.get(type(known[key].default), ((), ""))
    if value is not None and types and type(value) not in types:
        raise InputError(f"--method {name}: {key} must be {words}, got {value!r}.")


def split_method(text: str) -> tuple[str, dict[str, Any]]:
    """Split `name:key=value,key=value`; a list is written in square brackets."""
    name, colon, rest = text.strip().partition(":")
    settings: dict[str, Any] = {}
    for part in re.split(r",(?![^\[]*\])", rest) if colon else []:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value) or key in settings:
            what = f"'{key}' is set twice" if key in settings else f"'{part}' is not a setting"
            raise InputError(f"--method {text}: {what}: write it like {name}:key=value,key=value.")
        settings[key] = _parse_value(value)
    return name.strip(), settings


def _parse_value(text: str) -> Any:
    """Parse a number, true, false, none or a list; anything else is text."""
    if text.startswith("[") and text.endswith("]"):
        return [_parse_value(item.strip()) for item in text[1:-1].split(",") if item.strip()]
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    if not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text):
        return text
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def _suggest(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""


NAME = "calibrate"

EXAMPLE = (
    "calibrant demo --scores, then "
    "calibrant calibrate runs/demo/scores.csv -o runs/demo/calibrator.json"
)


class ScoreName(StrEnum):
    """Score used to choose a calibrator."""

    nll = "nll"
    brier = "brier"


def calibrate_command(
    scores: Annotated[
        list[str],
        typer.Argument(metavar="SCORES", help="csv, parquet, jsonl or npz: files, folder, glob."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="Output file: the calibrator or, with --apply, the scores.",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="NAME[:KEY=VALUE,...]",
            help="auto, or a method such as temperature.",
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
            "--test", metavar="OTHER", help="Evaluate on these rows.", show_default="cross-fitting"
        ),
    ] = None,
    json: Json = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PATH", help="Write an HTML report.")
    ] = None,
    score: Annotated[
        ScoreName | None,
        typer.Option("--score", help="Score that the choice minimises.", show_default="nll"),
    ] = None,
    positive: Positive = None,
    seed: Seed = 0,
    label: Label = "label",
    debug: Debug = False,
) -> None:
    """Fit a calibrator on SCORES and report calibration before and after.

    With --apply, calibrate the probabilities in SCORES instead; labels are not needed.

    Fit on rows that the model was not trained on.
    """
    columns = {"positive": positive, "label": label}
    if apply is not None:
        _refuse_with_apply({"--method": method, "--test": test, "--html": html, "--score": score})
        from calibrant.cli.progress import progress
        from calibrant.workflows.calibrator_file import apply_file

        applied = apply_file(apply, scores, out, columns, progress=progress)
        _print_applied(applied, apply, out, json=json)
        return
    from calibrant.cli.output import check_outputs
    from calibrant.scores.files import score_files

    criterion = "nll" if score is None else score.value
    calibrator = parse_method("auto" if method is None else method, score=criterion, seed=seed)
    files = score_files(scores)
    others = [] if test is None else score_files(test)
    _check_test_files(files, others)
    out = check_outputs(out, html, [*files, *others], what="calibrator")
    result = fit_files(calibrator, files, others, columns, score=criterion, seed=seed)
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
    """Fit on score files, and evaluate on other files or by cross-fitting."""
    from calibrant.cli.progress import progress
    from calibrant.inputs import check_two_classes
    from calibrant.reports.calibration.result import CalibrationResult
    from calibrant.scores import read_scores
    from calibrant.workflows.judge_calibrator import drop_zero_weights, to_rows

    with progress("calibrating"):
        rows = drop_zero_weights(read_scores(files, logits=True, **columns))
        check_two_classes(_class_counts(rows), rows.classes)
        test_rows = _read_test_rows(others, rows, files, columns)
        _fit(calibrator, to_rows(rows))
        interruption.check()
        chosen: Calibrator = calibrator.chosen_ if hasattr(calibrator, "chosen_") else calibrator
        judgement, why_not = _judge(calibrator, chosen, rows, test_rows, others, seed)
    return CalibrationResult(
        saved={**chosen.to_dict(), "zero_as": rows.zero_as} if rows.floored else chosen.to_dict(),
        requested=calibrator.method,
        n=rows.n,
        score=score,
        judgement=judgement,
        why_not=why_not,
        choice=getattr(calibrator, "comparison_", None),
        notes=(*rows.notes, *_describe_fit(chosen, rows)),
    )


def _fit(calibrator: Calibrator, rows: Any) -> None:
    """Fit, and blame non-default settings if the method fails."""
    try:
        calibrator.fit_rows(rows)
    except (TypeError, ValueError) as error:
        usual = type(calibrator)().get_params(deep=False)
        if isinstance(error, InputError) or calibrator.get_params(deep=False) == usual:
            raise
        raise InputError(
            f"--method {calibrator.method} failed with these settings ({error}): check them."
        ) from error


def _judge(
    calibrator: Calibrator,
    chosen: Calibrator,
    rows: Scores,
    test_rows: Scores | None,
    others: list[Path],
    seed: int,
) -> tuple[Any, str | None]:
    """Evaluate before and after, or return why that is not possible."""
    from calibrant.workflows.judge_calibrator import judge_by_crossfit, judge_on

    if test_rows is not None:
        source = ", ".join(str(file) for file in others)
        return judge_on(test_rows, chosen, source=source, seed=seed), None
    try:
        # Choosing is part of fitting: it is repeated without the held-out rows.
        fitted = chosen if chosen.method == "identity" else calibrator
        return judge_by_crossfit(
            rows, fitted, seed=seed, advance=lambda rows: interruption.check()
        ), None
    except InputError:
        return None, "there are too few rows to hold some out (name other rows with --test)."


def _read_test_rows(
    others: list[Path], rows: Scores, files: list[Path], columns: dict[str, Any]
) -> Scores | None:
    """Read the test rows, with classes in the order of the fitted rows."""
    from calibrant.inputs import check_two_classes
    from calibrant.scores import read_scores
    from calibrant.scores.checks import clip_logits
    from calibrant.scores.read import reorder_classes
    from calibrant.workflows.judge_calibrator import drop_zero_weights

    if not others:
        return None
    names = (str(others[0]), str(files[0]))
    scores = drop_zero_weights(read_scores(others, logits=True, **columns))
    if rows.floored and scores.logits is not None:  # the fitted rows define the value of 0
        scores = replace(scores, logits=clip_logits(scores.logits, rows.zero_as))
    test_rows = reorder_classes(scores, rows.classes, files=names)
    check_two_classes(_class_counts(test_rows), test_rows.classes)
    return test_rows


def _class_counts(scores: Scores) -> Any:
    import numpy as np

    return np.bincount(scores.labels, minlength=len(scores.classes))


def _describe_fit(calibrator: Calibrator, rows: Scores) -> list[str]:
    notes = []
    if getattr(calibrator, "hit_bound_", False):
        notes.append(
            f"{calibrator.method} stopped at a bound of its search range; "
            "inspect the scores before using it."
        )
    absent = [rows.classes[k] for k, n in enumerate(_class_counts(rows)) if n == 0]
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        notes.append(
            f"No row has the label '{absent[0]}'{more}: the calibrator cannot learn about it."
        )
    return notes


def _refuse_with_apply(options: dict[str, Any]) -> None:
    for flag, value in options.items():
        if value is not None:
            raise InputError(f"{flag} applies to fitting: leave it out with --apply.")


def _check_test_files(files: Iterable[Path], others: Iterable[Path]) -> None:
    """Refuse to evaluate on the fitted files."""
    fitted = {file.resolve() for file in files}
    repeated = next((file for file in others if file.resolve() in fitted), None)
    if repeated is not None:
        raise InputError(
            f"--test {repeated} is also fitted on: name other rows, or leave --test out."
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

        labels = {"source": source, "out": str(out), "command": command}
        write_calibration_html(result, html, **labels, name="--html")
    if json:
        report = {} if html is None else {"report": str(html)}
        print_json({**result.to_dict(), "out": str(out), **report})
        return
    echo(render_calibration(result, width=width(), color=color()))
    echo(f"\nThe calibrator{result.learned and f' ({result.learned})'} is in {out}")
    echo(f"Apply it: {printable(command)}")
    if html is not None:
        echo(f"The report is in {html}")


def _print_applied(
    applied: AppliedCalibrator, calibrator: Path, out: Path | None, *, json: bool
) -> None:
    if json:
        content: dict[str, Any] = {
            "schema": 1,
            "n": applied.rows,
            "method": applied.method,
            "calibrator": str(calibrator),
            "classes": list(applied.classes),
            "out": str(out),
        }
        print_json({**content, "notes": list(applied.notes)} if applied.notes else content)
        return
    count = "1 row" if applied.rows == 1 else f"{applied.rows:,} rows"
    echo(f"{count} calibrated with {applied.method}.")
    for note in applied.notes:
        echo(f"Note: {note}")
    echo(f"\nThe new scores are in {out}")
