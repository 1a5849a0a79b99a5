"""Kinds of study rows: texts, a table or images, with their default networks and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from calibrant.errors import InputError
from calibrant.study.settings.checks import check_bool, flag_name

if TYPE_CHECKING:
    from calibrant.study.settings.config import StudyConfig

SMALL = {"embedding": 64, "hidden": 64, "layers": 1}
"""BiLSTM options, much smaller than the paper's."""

TEXT = {"epochs": 20, "patience": 4, "learning_rate": 2e-3, "max_length": 128}
"""Training options of text networks trained from scratch; tables, images and transformers use the
defaults of their classifiers."""


Kind = Literal["text", "table", "image"]

TABULAR = "tabular"
"""Name of the setting for tables, in a file and on the command line."""

_NO_COLUMN = "names a column, but images have none"
_LABELS = "their labels are the names of their folders, or 'labels' of the npz file"
NOT_FOR_IMAGES: Mapping[str, tuple[Any, str]] = {
    "label": (None, f"{_NO_COLUMN}: {_LABELS}"),
    "weight": (None, f"{_NO_COLUMN}: weights are taken from 'weights' of the golden npz file"),
    "group": (None, f"{_NO_COLUMN}: equal images stay in one split by themselves"),
    "time": (None, f"{_NO_COLUMN}: images are divided at random"),
    "drop": ((), "is about columns of a table, but the rows are images"),
    "categories": ((), "is about columns of a table, but the rows are images"),
    "decimal": (None, "is about columns of a table, but the rows are images"),
    "missing": ((), "is about columns of a table, but the rows are images"),
    "dates": (None, "is about columns of a table, but the rows are images"),
    "cut": (False, f"is about a column of numbers, but images have none: {_LABELS}"),
    "redact": (True, "is about texts, but the rows are images"),
}
"""Settings that do not apply to images: default value and reason."""


def resolve_kind(saved: Mapping[str, Any]) -> Kind:
    """Return the kind that the settings name; anything but one kind raises `InputError`.

    Examples
    --------
    >>> resolve_kind({"text": "message"}), resolve_kind({"tabular": True})
    ('text', 'table')
    >>> resolve_kind({"text": "message", "images": True})
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: text and images are both given: name the column of the texts ...
    """
    words: dict[str, Kind] = {"text": "text", TABULAR: "table", "images": "image"}
    named = [name for name in (TABULAR, "images") if check_bool(name, saved.get(name, False))]
    named = [*(["text"] if saved.get("text") is not None else []), *named]
    if len(named) != 1:
        both = " and ".join(named[:2])
        problem = f"{both} are both" if named else "none of text, tabular and images is"
        raise InputError(
            f"{problem} given: name the column of the texts (--text COLUMN), or use --tabular if "
            "all columns are features, or --images if the rows are images."
        )
    return words[named[0]]


def check_columns(config: StudyConfig) -> None:
    """Raise `InputError` for a column that is used twice."""
    roles = {config.label: "label"}
    for name in ("text", "weight", "group", "time"):
        column = getattr(config, name)
        if column is not None and column in roles:
            raise InputError(
                f"{name} and {roles[column]} both name the column {column!r}: name two columns."
            )
        if column is not None:
            roles[column] = name
    for name in ("drop", "categories"):
        columns = config.drop if name == "drop" else config.category_features
        taken = next((column for column in columns if column in roles), None)
        if taken is not None:
            raise InputError(
                f"{name} names the column {taken!r}, which is the {roles[taken]} column and not a "
                "feature: leave it out."
            )


def check_kind(config: StudyConfig) -> None:
    """Raise `InputError` for settings of another kind of rows."""
    if config.images:
        _check_images(config)
    elif config.image_size is not None:
        raise InputError(
            "image_size is about images, but the rows are not images: leave --image-size out, or "
            "add --images."
        )
    if config.kind == "text":
        for name in ("drop", "categories", "missing"):
            value = config.category_features if name == "categories" else getattr(config, name)
            if value:
                raise InputError(
                    f"{name} is about columns of a table, but only the column {config.text!r} is "
                    f"read: leave {flag_name(name)} out, or use --tabular."
                )
    if config.kind != "table" and config.resample == "smote":
        raise InputError(
            f"resample 'smote' interpolates numeric rows, which {config.kind}s are not: use 'over' "
            "or 'under'."
        )


def _check_images(config: StudyConfig) -> None:
    if config.text is not None:
        resolve_kind({"text": config.text, "images": True})
    for name, (default, reason) in NOT_FOR_IMAGES.items():
        if getattr(config, name) != default:
            raise InputError(f"{name} {reason}: leave {flag_name(name)} out.")
