"""Settings of a study: flags and variables override the TOML file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.errors import InputError

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
        "--category",
        _COLUMN,
        "Treat a numeric column as categorical, or every word of the label column as a class; "
        "may be repeated.",
        _DATA,
    ),
]


Decimal = Annotated[
    str | None,
    _option("--decimal", ".|,", "Decimal mark, for columns whose values leave it open.", _DATA),
]


Missing = Annotated[
    list[str] | None,
    _repeatable("--missing", "WORD", "Word for a missing value; may be repeated.", _DATA,
         show_default='usual ones like "", NA, n/a, null, -'),
]  # fmt: skip


Dates = Annotated[
    str | None,
    _option("--dates", "dmy|mdy", "Day or month first, for dates that leave it open.", _DATA),
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
    _option("--model", "NAME,NAME", "Models to race. Tables: boosting, linear, mlp; text: ngrams, "
         "bilstm, text_cnn, or a transformer's folder or hub id; images: linear, resnet50, "
         "resnet110, wrn_26_10, densenet121, small_cnn.", _TRAINING,
         show_default="auto: boosting, linear and mlp; ngrams; or a small network and linear"),
]  # fmt: skip


Freeze = Annotated[
    bool | None,
    _option("--freeze/--no-freeze", None, "Train only a linear layer on a transformer's "
         "embeddings, in seconds.", _TRAINING, show_default="freeze beside auto, else no-freeze"),
]  # fmt: skip


PackAnyway = Annotated[
    bool | None,
    _option("--pack-anyway/--no-pack-anyway", None, "Pack the bundle of a model that learned "
         "nothing, too.", _PROMISES, show_default="no-pack-anyway"),
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
         "unreadable, none.", _PROMISES, show_default="by the model and the classes"),
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

_KINDS = ("text", "tabular", "images")
_TABLES = ("model_options", "training", "actions")  # merged key by key
_LOSS = re.compile(r"\s*(?:[-+.\deE]+\s*\*\s*)?[A-Za-z_][\w.]*\s*(?:[:+]|$)")


def merge_settings(
    options: Mapping[str, Any], config: Path | None, *, tabular: bool
) -> dict[str, Any]:
    """Merge options over the settings of the TOML file."""
    flags = {name: value for name, value in options.items() if value not in (None, {})}
    flags |= {"tabular": True} if tabular else {}
    kinds = _kind_flags(flags)
    if len(kinds) > 1:
        raise InputError(f"{kinds[0]} and {kinds[1]} exclude each other: give one of them.")
    saved = {} if config is None else _read_config(config)
    if kinds:
        saved = _drop_kind(saved, images="images" in flags)
    settings = {**saved, **flags}
    if settings.get("images") is not True:
        settings.setdefault("label", "label")
    elif flags.get("redact"):  # the default, so the settings cannot show it
        raise InputError("--redact applies to texts, but the rows are images: leave it out.")
    for name in _TABLES:
        if isinstance(saved.get(name), Mapping) and name in flags:
            settings[name] = {**saved[name], **flags[name]}
    if "data" not in settings:
        raise InputError(
            "DATA is missing: name the file with the labelled rows, like calibrant train "
            "tickets.csv, or a TOML file that names it with --config."
        )
    return settings


def _kind_flags(flags: Mapping[str, Any]) -> list[str]:
    """Return the flags that set the kind of rows."""
    text = [f"--text {flags['text']}"] if "text" in flags else []
    return text + [f"--{name}" for name in ("tabular", "images") if flags.get(name)]


def _drop_kind(saved: Mapping[str, Any], *, images: bool) -> dict[str, Any]:
    """Return the settings of a file without the kind of rows, which a flag sets."""
    column = ("label",) if images and not saved.get("images") else ()
    return {name: value for name, value in saved.items() if name not in (*_KINDS, *column)}


def _read_config(config: Path) -> dict[str, Any]:
    from calibrant.study.settings.config_file import read_config

    return read_config(config)


def split_candidates(texts: Iterable[str]) -> list[str]:
    """Split at commas, except within the options of a loss.

    A piece that is not the name of a loss, like `momentum=0.9`, belongs to the previous loss.
    """
    losses: list[str] = []
    for text in texts:
        first = len(losses)
        for piece in _split_at_commas(text):
            if len(losses) > first and _LOSS.match(piece) is None:
                losses[-1] += f",{piece}"
            else:
                losses.append(piece.strip())
    return [loss.strip() for loss in losses]


def _split_at_commas(text: str) -> list[str]:
    pieces, depth = [""], 0
    for sign in text:
        depth += (sign in "[{(") - (sign in "]})")
        if sign == "," and depth <= 0:
            pieces.append("")
        else:
            pieces[-1] += sign
    if len(pieces) > 1 and not pieces[-1].strip():
        pieces.pop()  # trailing comma
    return pieces


def parse_seeds(text: str | None) -> list[int] | None:
    """Parse `0,1,2`."""
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--seeds must be whole numbers like 0,1,2, got {text!r}: put commas between them."
        ) from None


def parse_options(texts: Iterable[str], *, flag: str) -> dict[str, Any]:
    """Parse the `key=value` of a repeated flag."""
    options: dict[str, Any] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise InputError(f"{flag} {text!r} must read key=value, like {flag} hidden=64.")
        if key in options:
            raise InputError(f"{flag} sets {key!r} twice: set it once.")
        options[key] = parse_value(value)
    return options


def parse_training_options(
    texts: Iterable[str], flags: Mapping[str, Any], variables: Iterable[str]
) -> dict[str, Any]:
    """Merge the options of --training with those that have their own flags."""
    options = parse_options(texts, flag="--training")
    for key, value in flags.items():
        if value is None or (key in options and key in variables):
            continue
        if key in options:
            flag = f"--{key.replace('_', '-')}"
            raise InputError(f"{flag} and --training {key}=... both set {key!r}: set it once.")
        options[key] = parse_value(value) if isinstance(value, str) else value
    return options


def parse_value(text: str) -> Any:
    """Parse a number, a list in brackets, true, false or none; anything else is text."""
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.strip().lower() in words:
        return words[text.strip().lower()]
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text


def parse_actions(texts: Iterable[str]) -> dict[str, str]:
    """Parse `CLASS=NAME`; the first = ends the class, because the classes are not known yet."""
    actions: dict[str, str] = {}
    for text in texts:
        class_name, equals, name = (part.strip() for part in text.partition("="))
        if not (class_name and equals and name):
            raise InputError(
                f"--action {text!r} is not an action: write it like 'item_defective=refund'."
            )
        if class_name in actions:
            raise InputError(f"--action names {class_name!r} twice: give each class one action.")
        actions[class_name] = name
    return actions
