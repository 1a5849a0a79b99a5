"""`calibrant train`: run a study on a file, from candidates to a bundle."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from calibrant.cli import study_settings as flags
from calibrant.cli.options import Debug, Json
from calibrant.cli.study_output import show_study, study_progress
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.study.result import PointResult

NAME = "train"
EXAMPLE = (
    "calibrant demo, then calibrant train runs/demo/logs.csv --text message --label reason "
    "--golden runs/demo/golden.csv --out-of-scope out_of_scope "
    '--hold "item_defective: precision>=0.85" --out runs/mine'
)


def train_command(
    context: typer.Context,
    data: flags.Data = None,
    text: flags.Text = None,
    tabular: flags.Tabular = False,
    images: flags.Images = None,
    image_size: flags.ImageSize = None,
    label: flags.LabelColumn = None,
    golden: flags.Golden = None,
    weight: flags.Weight = None,
    largest_weight: flags.LargestWeight = None,
    out_of_scope: flags.OutOfScope = None,
    drop: flags.Drop = None,
    category: flags.Category = None,
    decimal: flags.Decimal = None,
    missing: flags.Missing = None,
    dates: flags.Dates = None,
    cut: flags.Cut = None,
    group: flags.Group = None,
    time: flags.Time = None,
    shares: flags.Shares = None,
    rows: flags.Rows = None,
    redact: flags.Redact = None,
    overlap: flags.Overlap = None,
    seed: flags.SplitSeed = None,
    candidates: flags.Candidates = None,
    seeds: flags.Seeds = None,
    model: flags.Model = None,
    freeze: flags.Freeze = None,
    model_option: flags.ModelOption = None,
    epochs: flags.Epochs = None,
    batch_size: flags.BatchSize = None,
    learning_rate: flags.LearningRate = None,
    patience: flags.Patience = None,
    training: flags.Training = None,
    resample: flags.Resample = None,
    ensemble: flags.Ensemble = None,
    mc_dropout: flags.McDropout = None,
    devices: flags.Devices = None,
    jobs: flags.Jobs = None,
    calibrator: flags.Calibrator = None,
    hold: flags.Hold = None,
    confidence: flags.PromiseConfidence = None,
    ood: flags.Ood = None,
    action: flags.Action = None,
    pack_anyway: flags.PackAnyway = None,
    out: flags.Out = None,
    config: flags.Config = None,
    title: flags.Title = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare models and losses on DATA, calibrate the best one and certify its thresholds.

    Models are raced, then losses are compared on the winner. The best candidate is calibrated and
    gets thresholds on unseen rows, and is tested on others. The result is a bundle and a report.

    Options with one value can be set in the environment: CALIBRANT_EPOCHS=5 for --epochs 5.
    """
    from calibrant.cli.study_settings import (
        merge_settings,
        parse_actions,
        parse_options,
        parse_seeds,
        parse_training_options,
        split_candidates,
    )

    loop: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size}
    loop |= {"learning_rate": learning_rate, "patience": patience}
    variables = [name for name in loop if _from_environment(context, name)]
    options = {
        "data": data, "label": label, "text": text, "golden": golden, "weight": weight,
        "out_of_scope": out_of_scope, "drop": drop, "categories": category, "cut": cut,
        "decimal": decimal, "missing": missing, "dates": dates,
        "group": group, "time": time, "shares": shares, "rows": rows, "redact": redact,
        "overlap": overlap, "seed": seed, "seeds": parse_seeds(seeds), "model": model,
        "candidates": None if candidates is None else split_candidates(candidates),
        "model_options": parse_options(model_option or [], flag="--model-option"),
        "training": parse_training_options(training or [], loop, variables),
        "resample": resample, "jobs": jobs, "calibrator": calibrator, "hold": hold,
        "confidence": confidence, "ood": ood,
        "actions": parse_actions(action or []), "title": title, "images": images,
        "image_size": image_size, "ensemble": ensemble, "mc_dropout": mc_dropout,
        "devices": devices, "largest_weight": largest_weight, "freeze": freeze,
        "pack_anyway": pack_anyway,
    }  # fmt: skip
    from calibrant.study import StudyConfig, run_study
    from calibrant.study.rows.source import check_column_names

    settings = merge_settings(options, config, tabular=tabular)
    folder = _output_folder(out, str(settings["data"]))
    check_column_names(settings)  # before torch is imported, which takes seconds
    study = StudyConfig.from_dict(settings)
    with study_progress(folder) as report:
        result = run_study(study, folder, progress=report)
    folder_text = quote(str(folder))
    again = f"calibrant train --config {quote(str(folder / 'study.toml'))} --out {folder_text}"
    show_study(result, folder, again=again, json=json)
    if not result.packed or not all(_is_kept(point) for point in result.points):
        raise typer.Exit(1)


def _output_folder(out: str | None, data: str) -> Path:
    """Return the output folder, which must be writable."""
    from calibrant.study.study_folder import output_folder

    default = Path("runs", Path(data).name.split(".")[0] or "study")
    folder = default if out is None else output_folder(out)
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not existing.is_dir():
        raise InputError(f"--out {folder}: {existing} is a file, not a folder: choose another.")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(f"--out {folder}: the folder {existing} is not writable: choose another.")
    return folder


def _from_environment(context: typer.Context, name: str) -> bool:
    """Whether an option was set by an environment variable."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "ENVIRONMENT"


def _is_kept(point: PointResult) -> bool:
    """Whether there is a promise that the test rows do not contradict."""
    from calibrant.errors import TargetUnreachable

    if isinstance(point.result, TargetUnreachable) or point.result.guarantee is None:
        return False
    return point.check is None or point.check.verdict != "broken"
