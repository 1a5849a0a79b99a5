"""Flags of `calibrant train`, one for each setting of a study; None means that it was not given."""

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


def _one(flag: str, metavar: str | None, help: str, panel: str, **more: Any) -> Any:
    """Return an option with one value, which a variable of the environment can give too."""
    variable = f"CALIBRANT_{flag.split('/')[0].strip('-').replace('-', '_').upper()}"
    named = {"metavar": metavar, "help": help, "rich_help_panel": panel, **more}
    return typer.Option(flag, envvar=variable, show_envvar=False, **named)


def _many(flag: str, metavar: str, help: str, panel: str, **more: Any) -> Any:
    """Return an option that may be repeated; it has no variable, for values may hold spaces."""
    return typer.Option(flag, metavar=metavar, help=help, rich_help_panel=panel, **more)


Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="The labelled rows: csv, parquet or jsonl, also .gz; of images a folder or npz.",
        show_default=False,
    ),
]  # fmt: skip
Text = Annotated[str | None, _one("--text", _COLUMN, "Column with the texts.", _DATA)]
Tabular = Annotated[
    bool, typer.Option("--tabular", help="All columns are features.", rich_help_panel=_DATA)
]
Images = Annotated[
    bool | None,
    _one("--images", None, "The rows are images: an npz file, or a folder for each class.", _DATA),
]
ImageSize = Annotated[
    int | None,
    _one("--image-size", "N", "Height and width that images are brought to.", _DATA,
         show_default="as they are"),
]  # fmt: skip
LabelColumn = Annotated[
    str | None, _one("--label", _COLUMN, "Column with the labels.", _DATA, show_default="label")
]
Golden = Annotated[
    str | None,
    _one("--golden", "FILE", "Rows like DATA whose labels can be trusted.", _DATA,
         show_default="rows of DATA are held out"),
]  # fmt: skip
Weight = Annotated[
    str | None,
    _one("--weight", _COLUMN, "How many rows each golden row stands for.", _DATA),
]
LargestWeight = Annotated[
    float | None,
    _one("--largest-weight", "W", "The most a row could weigh by the sampling design.", _DATA,
         show_default="the largest weight seen"),
]  # fmt: skip
OutOfScope = Annotated[
    str | None, _one("--out-of-scope", "NAME", "Label of rows that belong to no class.", _DATA)
]
Drop = Annotated[
    list[str] | None,
    _many("--drop", _COLUMN, "Leave this column out; may be repeated.", _DATA),
]
Category = Annotated[
    list[str] | None,
    _many("--category", _COLUMN, "Numbers that name categories; may be repeated.", _DATA),
]
Cut = Annotated[
    bool | None,
    _one("--cut/--no-cut", None, "Cut a number to be predicted into low and high.", _DATA),
]
Group = Annotated[
    str | None, _one("--group", _COLUMN, "Rows that agree in it stay together.", _DATA)
]
Time = Annotated[
    str | None, _one("--time", _COLUMN, "Train on earlier rows, judge on later ones.", _DATA)
]
Shares = Annotated[
    str | None,
    _one("--shares", "A:B:C", "Of DATA: to train, to steer and choose, held out.", _DATA,
         show_default="8:1:1, without --golden 7:1:2"),
]  # fmt: skip
Rows = Annotated[int | None, _one("--rows", "N", "At most so many rows of DATA, at random.", _DATA)]
Redact = Annotated[
    bool | None,
    _one("--redact/--no-redact", None, "Take addresses, phone and card numbers out of texts.",
         _DATA, show_default="redact"),
]  # fmt: skip
Overlap = Annotated[
    str | None,
    _one("--overlap", "refuse|drop", "DATA rows that stand in the golden set too.", _DATA,
         show_default="refuse"),
]  # fmt: skip
SplitSeed = Annotated[
    int | None, _one("--seed", "N", "Seed of the splits.", _DATA, show_default="0")
]
Candidates = Annotated[
    list[str] | None,
    _many("--candidates", "LOSS,LOSS", "Losses to compare, like ce,focal:gamma=3.", _TRAINING,
          show_default="ce, focal with gamma 1, 3, 5, adafocal"),
]  # fmt: skip
Seeds = Annotated[
    str | None,
    _one("--seeds", "N,N", "Train every candidate with each.", _TRAINING, show_default="0"),
]
Model = Annotated[
    str | None,
    _one("--model", "NAME", "bilstm or text_cnn for texts, mlp for tables, resnet50, resnet110, "
         "wrn_26_10, densenet121 for images, or a folder or hub id of a transformer.", _TRAINING,
         show_default="bilstm, mlp or resnet50"),
]  # fmt: skip
ModelOption = Annotated[
    list[str] | None,
    _many("--model-option", "KEY=VALUE", "Of the network, like hidden=64; may be repeated.",
          _TRAINING),
]  # fmt: skip
Epochs = Annotated[
    int | None,
    _one("--epochs", "N", "Most epochs to train.", _TRAINING,
         show_default="20; tables 100; images 30; transformers 4"),
]  # fmt: skip
BatchSize = Annotated[
    int | None,
    _one("--batch-size", "N", "Rows per step.", _TRAINING,
         show_default="64; images 128; transformers 32"),
]  # fmt: skip
LearningRate = Annotated[
    float | None,
    _one("--learning-rate", "X", "At its height.", _TRAINING,
         show_default="0.002; tables 0.001; images 0.1; transformers 0.00005"),
]  # fmt: skip
Patience = Annotated[
    str | None,
    _one("--patience", "N|none", "Stop after so many epochs without gain.", _TRAINING,
         show_default="4; tables 10; images and transformers none"),
]  # fmt: skip
Training = Annotated[
    list[str] | None,
    _many("--training", "KEY=VALUE", "Any other, like optimizer=adamw; may be repeated.",
          _TRAINING),
]  # fmt: skip
Resample = Annotated[
    str | None,
    _one("--resample", "over|under|smote", "Change how often train rows show a class.", _TRAINING,
         show_default="leave them"),
]  # fmt: skip
Jobs = Annotated[
    int | None,
    _one("--jobs", "N", "Candidates side by side.", _TRAINING, show_default="one per core"),
]
Devices = Annotated[
    int | None,
    _one("--devices", "N", "GPUs that train one candidate together.", _TRAINING, show_default="1"),
]
Ensemble = Annotated[
    bool | None,
    _one("--ensemble/--no-ensemble", None, "Also average the networks of all seeds.", _TRAINING,
         show_default="no-ensemble"),
]  # fmt: skip
McDropout = Annotated[
    int | None,
    _one("--mc-dropout", "N", "Also average so many thinned copies of each network.", _TRAINING,
         show_default="0, none"),
]  # fmt: skip
Calibrator = Annotated[
    str | None,
    _one("--calibrator", "NAME", "auto, or a method like temperature.", _PROMISES,
         show_default="auto"),
]  # fmt: skip
Hold = Annotated[
    list[str] | None,
    _many("--hold", "TARGET", 'What must be kept, like "spam: precision>=0.85"; may be repeated.',
          _PROMISES),
]  # fmt: skip
PromiseConfidence = Annotated[
    float | None,
    _one("--confidence", "SHARE", "That all promises together are kept.", _PROMISES,
         show_default="0.95"),
]  # fmt: skip
Ood = Annotated[
    str | None,
    _one("--ood", "SCORE", "What stops rows unlike the train rows: energy, entropy, max_logit, "
         "none.", _PROMISES, show_default="energy"),
]  # fmt: skip
Action = Annotated[
    list[str] | None,
    _many("--action", "CLASS=NAME", "What acting on a class means; may be repeated.", _PROMISES),
]
Out = Annotated[
    str | None,
    typer.Option(
        "--out", "-o", metavar="FOLDER", help="Where to put everything.",
        show_default="runs/ and the name of DATA",
    ),
]  # fmt: skip
Config = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Settings as a toml file; flags go before it.",
    ),
]  # fmt: skip
Title = Annotated[
    str | None,
    typer.Option(
        "--title", metavar="TEXT", help="What the report is called.", envvar="CALIBRANT_TITLE",
        show_envvar=False, show_default="Study",
    ),
]  # fmt: skip
