"""Options of `calibrant train`; None means not set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "Action", "BatchSize", "Calibrator", "Candidates", "Category", "Config", "Cut", "Data",
    "Devices", "Drop", "Ensemble", "Epochs", "Golden", "Group", "Hold", "ImageSize", "Images",
    "Jobs", "LabelColumn", "LargestWeight", "LearningRate", "McDropout", "Model", "ModelOption",
    "Ood", "Out", "OutOfScope", "Overlap", "Patience", "PromiseConfidence", "Redact", "Resample",
    "Rows", "Seeds", "Shares", "SplitSeed", "Tabular", "Text", "Time", "Title", "Training",
    "Weight",
]  # fmt: skip

_DATA, _TRAINING, _PROMISES = "Data", "Candidates and training", "Promises"
_COLUMN = "COLUMN"


def _option(flag: str, metavar: str | None, help: str, panel: str, **more: Any) -> Any:
    """Return an option with one value, also read from an environment variable."""
    variable = f"CALIBRANT_{flag.split('/')[0].strip('-').replace('-', '_').upper()}"
    settings = {"metavar": metavar, "help": help, "rich_help_panel": panel, **more}
    return typer.Option(flag, envvar=variable, show_envvar=False, **settings)


def _repeatable(flag: str, metavar: str, help: str, panel: str, **more: Any) -> Any:
    """Return a repeatable option; without a variable, because values may contain spaces."""
    return typer.Option(flag, metavar=metavar, help=help, rich_help_panel=panel, **more)


Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="Labelled rows: csv, parquet or jsonl, also .gz; for images, a folder or npz.",
        show_default=False,
    ),
]  # fmt: skip
Text = Annotated[str | None, _option("--text", _COLUMN, "Text column.", _DATA)]
Tabular = Annotated[
    bool, typer.Option("--tabular", help="Use all columns as features.", rich_help_panel=_DATA)
]
Images = Annotated[
    bool | None,
    _option("--images", None, "DATA is images: an npz file, or one folder per class.", _DATA),
]
ImageSize = Annotated[
    int | None,
    _option("--image-size", "N", "Resize images to N x N.", _DATA,
         show_default="original size"),
]  # fmt: skip
LabelColumn = Annotated[
    str | None, _option("--label", _COLUMN, "Label column.", _DATA, show_default="label")
]
Golden = Annotated[
    str | None,
    _option("--golden", "FILE", "Golden set: rows like DATA with trusted labels.", _DATA,
         show_default="held-out rows of DATA"),
]  # fmt: skip
Weight = Annotated[
    str | None,
    _option("--weight", _COLUMN, "Column of golden rows' weights.", _DATA),
]
LargestWeight = Annotated[
    float | None,
    _option("--largest-weight", "W", "Upper bound of a row's weight in the sampling design.", _DATA,
         show_default="the largest weight"),
]  # fmt: skip
OutOfScope = Annotated[
    str | None, _option("--out-of-scope", "NAME", "Label of out-of-scope rows.", _DATA)
]
Drop = Annotated[
    list[str] | None,
    _repeatable("--drop", _COLUMN, "Exclude a column; may be repeated.", _DATA),
]
Category = Annotated[
    list[str] | None,
    _repeatable(
        "--category", _COLUMN, "Treat a numeric column as categorical; may be repeated.", _DATA
    ),
]
Cut = Annotated[
    bool | None,
    _option("--cut/--no-cut", None, "Split a numeric label into low and high.", _DATA),
]
Group = Annotated[
    str | None, _option("--group", _COLUMN, "Keep rows with equal values in one split.", _DATA)
]
Time = Annotated[
    str | None, _option("--time", _COLUMN, "Train on earlier rows, test on later ones.", _DATA)
]
Shares = Annotated[
    str | None,
    _option("--shares", "A:B:C", "Shares of DATA: train, steer, held out.", _DATA,
         show_default="8:1:1, or 7:1:2 without --golden"),
]  # fmt: skip
Rows = Annotated[
    int | None, _option("--rows", "N", "Use a random sample of at most N rows.", _DATA)
]
Redact = Annotated[
    bool | None,
    _option("--redact/--no-redact", None, "Remove addresses, phone and card numbers from texts.",
         _DATA, show_default="redact"),
]  # fmt: skip
Overlap = Annotated[
    str | None,
    _option("--overlap", "refuse|drop", "Handling of DATA rows that are also golden.", _DATA,
         show_default="refuse"),
]  # fmt: skip
SplitSeed = Annotated[
    int | None, _option("--seed", "N", "Random seed of the splits.", _DATA, show_default="0")
]
Candidates = Annotated[
    list[str] | None,
    _repeatable("--candidates", "LOSS,LOSS", "Losses to compare, like ce,focal:gamma=3.", _TRAINING,
          show_default="ce, focal with gamma 1, 3, 5, adafocal"),
]  # fmt: skip
Seeds = Annotated[
    str | None,
    _option("--seeds", "N,N", "Random seeds for each candidate.", _TRAINING, show_default="0"),
]
Model = Annotated[
    str | None,
    _option("--model", "NAME", "Text: bilstm, text_cnn; tables: mlp; images: resnet50, resnet110, "
         "wrn_26_10, densenet121; or a transformer's folder or hub id.", _TRAINING,
         show_default="bilstm, mlp or resnet50"),
]  # fmt: skip
ModelOption = Annotated[
    list[str] | None,
    _repeatable("--model-option", "KEY=VALUE", "Network option like hidden=64; may be repeated.",
          _TRAINING),
]  # fmt: skip
Epochs = Annotated[
    int | None,
    _option("--epochs", "N", "Maximum number of epochs.", _TRAINING,
         show_default="20; tables 100; images 30; transformers 4"),
]  # fmt: skip
BatchSize = Annotated[
    int | None,
    _option("--batch-size", "N", "Batch size.", _TRAINING,
         show_default="64; images 128; transformers 32"),
]  # fmt: skip
LearningRate = Annotated[
    float | None,
    _option("--learning-rate", "X", "Peak learning rate.", _TRAINING,
         show_default="0.002; tables 0.001; images 0.1; transformers 0.00005"),
]  # fmt: skip
Patience = Annotated[
    str | None,
    _option("--patience", "N|none", "Early stopping: epochs without improvement.", _TRAINING,
         show_default="4; tables 10; images and transformers none"),
]  # fmt: skip
Training = Annotated[
    list[str] | None,
    _repeatable("--training", "KEY=VALUE", "Other option like optimizer=adamw; may be repeated.",
                _TRAINING),
]  # fmt: skip
Resample = Annotated[
    str | None,
    _option("--resample", "over|under|smote", "Resample the train rows by class.", _TRAINING,
         show_default="none"),
]  # fmt: skip
Jobs = Annotated[
    int | None,
    _option(
        "--jobs", "N", "Candidates trained in parallel.", _TRAINING, show_default="one per core"
    ),
]
Devices = Annotated[
    int | None,
    _option("--devices", "N", "GPUs per candidate.", _TRAINING, show_default="1"),
]
Ensemble = Annotated[
    bool | None,
    _option("--ensemble/--no-ensemble", None, "Also evaluate the ensemble of all seeds.", _TRAINING,
         show_default="no-ensemble"),
]  # fmt: skip
McDropout = Annotated[
    int | None,
    _option("--mc-dropout", "N", "Also average N dropout samples of each network.", _TRAINING,
         show_default="0"),
]  # fmt: skip
Calibrator = Annotated[
    str | None,
    _option("--calibrator", "NAME", "auto, or a method such as temperature.", _PROMISES,
         show_default="auto"),
]  # fmt: skip
Hold = Annotated[
    list[str] | None,
    _repeatable("--hold", "TARGET", 'Target like "spam: precision>=0.85"; may be repeated.',
          _PROMISES),
]  # fmt: skip
PromiseConfidence = Annotated[
    float | None,
    _option("--confidence", "SHARE", "Joint confidence of all promises.", _PROMISES,
         show_default="0.95"),
]  # fmt: skip
Ood = Annotated[
    str | None,
    _option("--ood", "SCORE", "Out-of-distribution score: energy, entropy, max_logit, "
         "none.", _PROMISES, show_default="energy"),
]  # fmt: skip
Action = Annotated[
    list[str] | None,
    _repeatable("--action", "CLASS=NAME", "Action for a class; may be repeated.", _PROMISES),
]
Out = Annotated[
    str | None,
    typer.Option(
        "--out", "-o", metavar="FOLDER", help="Output folder.",
        show_default="runs/ plus the name of DATA",
    ),
]  # fmt: skip
Config = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Settings as a TOML file; flags override it.",
    ),
]  # fmt: skip
Title = Annotated[
    str | None,
    typer.Option(
        "--title", metavar="TEXT", help="Title of the report.", envvar="CALIBRANT_TITLE",
        show_envvar=False, show_default="Study",
    ),
]  # fmt: skip
