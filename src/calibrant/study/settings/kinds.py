"""What the rows of a study are: texts, a table or images; settings of another kind are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from calibrant.errors import InputError
from calibrant.study.settings.checks import flag_of, truth_of

if TYPE_CHECKING:
    from calibrant.study.settings.config import StudyConfig

__all__ = ["NETWORKS", "NOT_OF_IMAGES", "TABULAR", "Kind", "check_columns", "check_kind", "kind_of"]

Kind = Literal["text", "table", "image"]

NETWORKS: Mapping[Kind, str] = {"text": "bilstm", "table": "mlp", "image": "resnet50"}
"""The network of each kind where none is asked for."""

TABULAR = "tabular"
"""The word for "there is no text column", in a file and on the command line."""

_NO_COLUMN = "names a column, but images have none"
_LABELS = "their labels are the names of their folders, or 'labels' of the npz file"
NOT_OF_IMAGES: Mapping[str, tuple[Any, str]] = {
    "label": (None, f"{_NO_COLUMN}: {_LABELS}"),
    "weight": (None, f"{_NO_COLUMN}: weights are taken from 'weights' of the golden npz file"),
    "group": (None, f"{_NO_COLUMN}: equal images stay in one split by themselves"),
    "time": (None, f"{_NO_COLUMN}: images are divided at random"),
    "drop": ((), "is about columns of a table, but the rows are images"),
    "categories": ((), "is about columns of a table, but the rows are images"),
    "cut": (False, f"is about a column of numbers, but images have none: {_LABELS}"),
    "redact": (True, "is about texts, but the rows are images"),
}
"""Settings that say nothing about images: their value where none was given, and why."""


def kind_of(saved: Mapping[str, Any]) -> Kind:
    """Return the kind that settings name; anything but one kind is refused.

    Examples
    --------
    >>> kind_of({"text": "message"}), kind_of({"tabular": True}), kind_of({"images": True})
    ('text', 'table', 'image')
    >>> kind_of({"text": "message", "images": True})
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: text and images are both given: name the column of the texts ...
    """
    words: dict[str, Kind] = {"text": "text", TABULAR: "table", "images": "image"}
    given = [name for name in (TABULAR, "images") if truth_of(name, saved.get(name, False))]
    given = [*(["text"] if saved.get("text") is not None else []), *given]
    if len(given) != 1:
        both = " and ".join(given[:2])
        what = f"{both} are both" if given else "neither text, tabular nor images is"
        raise InputError(
            f"{what} given: name the column of the texts (--text COLUMN), or say that all columns "
            "are features (--tabular), or that the rows are images (--images)."
        )
    return words[given[0]]


def check_columns(config: StudyConfig) -> None:
    """Refuse a column that was given two jobs."""
    jobs = {config.label: "label"}
    for name in ("text", "weight", "group", "time"):
        column = getattr(config, name)
        if column is not None and column in jobs:
            raise InputError(
                f"{name} and {jobs[column]} both name the column {column!r}: each has one job."
            )
        if column is not None:
            jobs[column] = name
    for name in ("drop", "categories"):
        taken = next((column for column in getattr(config, name) if column in jobs), None)
        if taken is not None:
            raise InputError(
                f"{name} names the column {taken!r}, which is the {jobs[taken]} column and no "
                "feature: leave it out."
            )


def check_kind(config: StudyConfig) -> None:
    """Refuse settings that are about rows of another kind."""
    if config.images:
        _check_images(config)
    elif config.image_size is not None:
        raise InputError(
            "image_size is about images, but the rows are none: leave --image-size out, or add "
            "--images."
        )
    if config.kind == "text":
        for name in ("drop", "categories"):
            if getattr(config, name):
                raise InputError(
                    f"{name} is about columns of a table, but only the column {config.text!r} is "
                    f"read: leave {flag_of(name)} out, or use --tabular."
                )
    if config.kind != "table" and config.resample == "smote":
        raise InputError(
            f"resample 'smote' mixes rows of numbers, which {config.kind}s are not: take 'over' or "
            "'under'."
        )


def _check_images(config: StudyConfig) -> None:
    if config.text is not None:
        kind_of({"text": config.text, "images": True})
    for name, (absent, why) in NOT_OF_IMAGES.items():
        if getattr(config, name) != absent:
            raise InputError(f"{name} {why}: leave {flag_of(name)} out.")
