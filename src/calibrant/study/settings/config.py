"""The settings of a study, with the same names as the command-line flags and `study.toml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import as_seed
from calibrant.study.settings import checks as checks
from calibrant.study.settings.kinds import (
    NOT_FOR_IMAGES,
    TABULAR,
    Kind,
    check_columns,
    check_kind,
    resolve_kind,
)
from calibrant.study.settings.models import AUTO, is_transformer, parse_models
from calibrant.study.settings.training_checks import (
    check_losses,
    check_mc_dropout,
    check_models,
    check_training,
    require_torch,
)
from calibrant.thresholds.rates import Target, parse_hold

CANDIDATES = ("ce", "focal:gamma=1", "focal:gamma=3", "focal:gamma=5", "adafocal")
"""The losses of the return-reason paper, and AdaFocal."""

OOD = ("auto", "energy", "entropy", "max_logit", "unreadable", "none")
"""Scores of the out-of-scope rule; "none" for no rule."""

RESAMPLE = ("over", "under", "smote")
"""Ways to resample the train rows by class."""

DECIMAL = (".", ",")
"""Decimal marks."""

DATES = ("dmy", "mdy")
"""Orders of dates: day or month first."""

OVERLAP = ("refuse", "drop")
"""Ways to handle log rows that are also in the golden set."""

BASELINE = "ce"
"""The loss that models are raced with, and others are compared with."""

_TRAINING = ("epochs", "batch_size", "learning_rate", "patience", "optimizer", "device")


@dataclass(frozen=True)
class StudyConfig:
    """Settings of a study.

    Everything that can be checked without the data is checked on construction; losses and networks
    are looked up, which requires the extra `torch`.

    Parameters
    ----------
    data : file of the logs: csv, parquet or jsonl; for images an npz file, or a folder with one
        folder for each class
    label : its label column; None for images
    text : the text column; None for tables and images
    golden : file like `data` with trusted labels; None to hold out rows of `data` instead
    weight : column of the golden set with inverse inclusion probabilities, or None
    largest_weight : largest weight possible under the sampling design of the golden set; by default
        the largest weight seen, which promises then state as a condition
    out_of_scope : label of rows that belong to no class; None if there are none
    drop : columns of a table that are left out
    categories : numeric columns of a table that are categories. With the label column among them,
        words like "NA" are classes and not missing labels
    decimal : decimal mark of numbers in text cells, "." or ",", where the values leave it open
    missing : words for a missing value in a table, besides the usual ones like "n/a"
    dates : "dmy" (day first) or "mdy" (month first), where the values leave it open
    cut : whether to cut a numeric label into "low" and "high" at the train median
    group : column whose equal values stay in one split, or None
    time : column by which the logs are split into earlier and later rows, or None
    shares : how the logs are split into train, steer and held-out rows; also text like "8:1:1".
        With several candidates half of the steer share is used to choose among them
    rows : maximum number of log rows, drawn at random; None for all
    redact : whether to redact e-mail addresses, phone, order and card numbers in texts
    overlap : how to handle log rows that are also in the golden set: "refuse" or "drop"
    candidates : losses; "ce" is added if missing
    seeds : each candidate is trained once per seed; from 0 to 4294967295, as is `seed`
    model : models to race with cross-entropy, separated by commas; the losses are compared on the
        winner. "auto", the default, stands for boosting, linear and mlp (tables), ngrams (texts),
        a small network and linear (images). Others are names of networks, and for texts the folder
        or hub id of a transformer
    freeze : whether transformers keep their weights, and only a linear layer on their embeddings is
        trained; None for yes beside "auto", else no
    model_options : arguments of the networks
    training : arguments of the estimators, such as {"epochs": 20}; in a race each model takes those
        that it knows
    resample : "over", "under" or "smote" the train rows; None for no resampling
    calibrator : "auto", or the name of a method
    hold : promises, like "item_defective: precision>=0.85"; several targets of one threshold are
        joined by " and "
    confidence : confidence that all promises hold together
    ood : score of the out-of-scope rule: "energy", "entropy", "max_logit", "unreadable", or "none"
        for no rule; "auto" for energy where a network was chosen, else unreadable, or entropy where
        `out_of_scope` names rows of no class and there are more than two classes
    actions : action per class name, for rows that are acted on
    seed : seed of the splits
    pack_anyway : whether to pack the bundle of a model that learned nothing
    jobs : candidates trained in parallel; 0 for one per core, or one on a GPU
    title : title of the report
    images : whether the rows are images
    image_size : height and width to resize images to; None to keep their size
    ensemble : whether each loss also gets a candidate that averages the networks of all seeds
    mc_dropout : number of MC dropout passes of an additional candidate per trained network; 0 for
        no such candidate
    devices : GPUs (or processes) that train one candidate together

    Examples
    --------
    >>> from calibrant.study import StudyConfig
    >>> config = StudyConfig("tickets.csv", "reason", text="message", candidates=["adafocal"])
    >>> config.candidates, config.kind, config.models
    (('ce', 'adafocal'), 'text', ('ngrams',))
    >>> StudyConfig.from_dict(config.to_dict()) == config
    True
    >>> StudyConfig("tickets.csv", "reason", text="message", ood="enrgy")
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: ood must be one of auto, energy, entropy, max_logit, unreadable,
    none, got 'enrgy' (did you mean 'energy'?).
    """

    data: str
    label: str | None = None
    text: str | None = None
    golden: str | None = None
    weight: str | None = None
    out_of_scope: str | None = None
    drop: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    decimal: str | None = None
    missing: tuple[str, ...] = ()
    dates: str | None = None
    cut: bool = False
    group: str | None = None
    time: str | None = None
    shares: tuple[float, float, float] | None = None
    rows: int | None = None
    redact: bool = True
    overlap: str = "refuse"
    candidates: tuple[str, ...] = CANDIDATES
    seeds: tuple[int, ...] = (0,)
    model: str | None = None
    model_options: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    resample: str | None = None
    calibrator: str = "auto"
    hold: tuple[str, ...] = ()
    confidence: float = 0.95
    ood: str = "auto"
    actions: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    jobs: int = 0
    title: str = "Study"
    images: bool = False
    image_size: int | None = None
    ensemble: bool = False
    mc_dropout: int = 0
    devices: int = 1
    largest_weight: float | None = None
    freeze: bool | None = None
    pack_anyway: bool = False

    def __post_init__(self) -> None:
        values = {**self._check_texts(), **self._check_lists(), **self._check_values()}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        check_columns(self)
        check_kind(self)
        if self.weight is not None and self.golden is None:
            raise InputError(
                f"weight names the column {self.weight!r} of a golden set, but golden is not "
                "given: add golden, or leave weight out."
            )
        weighted = self.golden is not None and (self.weight is not None or self.images)
        checks.check_largest_weight(self.largest_weight, weighted=weighted)
        for text in self.hold:
            parse_hold(text, flag="--hold")
        _check_calibrator(self.calibrator)
        require_torch("a study")
        check_losses(self.candidates)
        check_models(self)
        check_training(self, _setting_names())
        check_mc_dropout(self)

    @property
    def kind(self) -> Kind:
        """Kind of the rows: "text", "table" or "image"."""
        return "image" if self.images else "table" if self.text is None else "text"

    @property
    def models(self) -> tuple[str, ...]:
        """The models that are raced, or the only one."""
        return parse_models(self.model, self.kind)

    def is_frozen(self, model: str) -> bool:
        """Return whether a model is a transformer that keeps its weights."""
        beside_auto = AUTO in [part.strip() for part in (self.model or "").split(",")]
        freeze = beside_auto if self.freeze is None else self.freeze
        return freeze and is_transformer(self, model)

    @property
    def category_features(self) -> tuple[str, ...]:
        """The features that are categories: `categories` without the label."""
        return tuple(name for name in self.categories if name != self.label)

    @property
    def named_classes(self) -> frozenset[str]:
        """The classes that settings name, whose words do not stand for a missing label."""
        held = (of for of, _ in self.promises if of is not None)
        outside = () if self.out_of_scope is None else (self.out_of_scope,)
        return frozenset((*outside, *self.actions, *held))

    @property
    def compares(self) -> bool:
        """Whether there are several candidates to choose from."""
        several = len(self.models) * len(self.candidates) * len(self.seeds) > 1
        return several or self.mc_dropout > 0

    @property
    def promises(self) -> tuple[tuple[str | None, tuple[Target, ...]], ...]:
        """Class (or None) and targets of each promise in `hold`."""
        return tuple(parse_hold(text, flag="--hold") for text in self.hold)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON and TOML values, without those that are None.

        None within options is written "none", since TOML has no null. Settings that do not apply
        to images are left out for images.
        """
        out: dict[str, Any] = {TABULAR: True} if self.kind == "table" else {}
        for item in fields(self):
            value = getattr(self, item.name)
            if value is not None and not (self.images and item.name in NOT_FOR_IMAGES):
                out[item.name] = encode_setting(value)
        return out

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> StudyConfig:
        """Rebuild from `to_dict`; an unknown key raises `InputError` with the nearest name."""
        check_names(saved)
        kind = resolve_kind(saved)
        settings = {name: value for name, value in saved.items() if name != TABULAR}
        needed = {"data": "the file with the logs"}
        needed |= {} if kind == "image" else {"label": "the label column"}
        for name, what in needed.items():
            if name not in settings:
                raise InputError(f"{name} is missing: name {what} ({checks.flag_name(name)}).")
        for name in ("model_options", "training"):
            if isinstance(settings.get(name), Mapping):
                settings[name] = decode_setting(settings[name])
        return cls(**settings)

    def _check_texts(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, like in _TEXTS.items():
            value = getattr(self, name)
            needed = name == "data" or (name == "label" and self.images is not True)
            if value is not None or needed:
                out[name] = checks.check_text(name, value, like=like)
        return out

    def _check_lists(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            name: checks.check_texts(name, getattr(self, name), like=like, blank=name in _COLUMNS)
            for name, like in _LISTS.items()
        }
        if BASELINE not in out["candidates"]:
            out["candidates"] = (BASELINE, *out["candidates"])
        out["seeds"] = checks.check_seeds(self.seeds)
        for name in ("model_options", "training", "actions"):
            out[name] = checks.check_options(name, getattr(self, name))
        for of, action in out["actions"].items():
            checks.check_text("a class in actions", of, like="item_defective")
            checks.check_text(f"the action for {of!r}", action, like="refund")
        return out

    def _check_values(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "confidence": checks.check_confidence(self.confidence),
            "cut": checks.check_bool("cut", self.cut),
            "redact": checks.check_bool("redact", self.redact),
            "overlap": checks.check_choice("overlap", self.overlap, OVERLAP),
            "ood": checks.check_choice("ood", self.ood, OOD),
            "seed": as_seed(self.seed),
            "jobs": checks.check_integer("jobs", self.jobs, least=0),
            "images": checks.check_bool("images", self.images),
            "devices": checks.check_integer("devices", self.devices, least=1),
            "pack_anyway": checks.check_bool("pack_anyway", self.pack_anyway),
            **checks.check_averages(self.ensemble, self.mc_dropout, self.seeds),
        }
        if self.freeze is not None:
            out["freeze"] = checks.check_bool("freeze", self.freeze)
        for name in ("rows", "image_size"):
            if getattr(self, name) is not None:
                out[name] = checks.check_integer(name, getattr(self, name), least=1)
        if self.shares is not None:
            out["shares"] = checks.parse_shares(self.shares)
        for name, choices in (("decimal", DECIMAL), ("dates", DATES)):
            if getattr(self, name) is not None:
                out[name] = checks.check_choice(name, getattr(self, name), choices)
        if self.resample is not None:
            out["resample"] = checks.check_choice("resample", self.resample, RESAMPLE)
        return out


_TEXTS = {
    "data": "tickets.csv",
    "label": "reason",
    "text": "message",
    "golden": "golden.csv",
    "weight": "weight",
    "out_of_scope": "other",
    "group": "customer",
    "time": "created",
    "model": "bilstm",
    "calibrator": "auto",
    "title": "Return reasons",
}
_LISTS = {
    "drop": "row_id",
    "categories": "shop",
    "missing": "oops",
    "candidates": "focal:gamma=3",
    "hold": "item_defective: precision>=0.85",
}

_COLUMNS = ("drop", "categories")
"""Lists of columns, of which one may have no name."""


def check_names(saved: Mapping[str, Any], *, source: str = "settings") -> None:
    """Raise `InputError` for an unknown setting, with the nearest name.

    Examples
    --------
    >>> check_names({"candidate": ["ce"]}, source="study.toml")
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: study.toml: there is no setting 'candidate' (did you mean
    'candidates'?).
    """
    for name in saved:
        if name in _TRAINING:
            raise InputError(
                f"{source}: {name!r} is a training option: put it under training (in a TOML file "
                "below [training])."
            )
        if name not in _setting_names():
            hint = checks.suggest(name, _setting_names())
            known = "" if hint else f": the settings are {', '.join(_setting_names())}"
            raise InputError(f"{source}: there is no setting {name!r}{hint}{known}.")


def _setting_names() -> Sequence[str]:
    return [*(item.name for item in fields(StudyConfig)), TABULAR]


def _check_calibrator(name: str) -> None:
    if name == "auto":
        return
    from calibrant.calibrators import list_methods

    known = [
        method for method in list_methods() if method != "chain"
    ]  # chains are built in Python only
    if name not in known:
        raise InputError(
            f"calibrator must be auto or a method, got {name!r}{checks.suggest(name, known)}: "
            f"the methods are {', '.join(known)}."
        )


def encode_setting(value: Any) -> Any:
    """Return a value with tuples as lists and None as "none".

    Examples
    --------
    >>> encode_setting({"patience": None, "hidden": (8, 4)})
    {'patience': 'none', 'hidden': [8, 4]}
    """
    if isinstance(value, Mapping):
        return {key: encode_setting(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [encode_setting(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    return "none" if value is None else value


def decode_setting(value: Any) -> Any:
    """Return options with "none" as None.

    Examples
    --------
    >>> decode_setting({"patience": "none", "hidden": [8, 4]})
    {'patience': None, 'hidden': [8, 4]}
    """
    if isinstance(value, Mapping):
        return {key: decode_setting(part) for key, part in value.items()}
    return None if value == "none" else value
