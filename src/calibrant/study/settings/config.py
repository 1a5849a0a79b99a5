"""The settings of a study: one frozen object, the same words as flags and in `study.toml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from calibrant.errors import InputError
from calibrant.inputs import as_seed
from calibrant.study.settings import checks as checks
from calibrant.study.settings.kinds import (
    NETWORKS,
    NOT_OF_IMAGES,
    TABULAR,
    Kind,
    check_columns,
    check_kind,
    kind_of,
)
from calibrant.study.settings.mc_dropout_checks import check_thinning
from calibrant.study.settings.training_checks import (
    check_losses,
    check_network,
    check_training,
    need_torch,
)
from calibrant.study.settings.values import read_back, written
from calibrant.thresholds.hold_text import parse_hold
from calibrant.thresholds.rates import Target

__all__ = ["CANDIDATES", "OOD", "OVERLAP", "RESAMPLE", "StudyConfig", "check_names"]

CANDIDATES = ("ce", "focal:gamma=1", "focal:gamma=3", "focal:gamma=5", "adafocal")
"""The losses of the return-reason paper, and AdaFocal."""

OOD = ("energy", "entropy", "max_logit", "none")
"""Scores that an out-of-scope rule can go by, and none."""

RESAMPLE = ("over", "under", "smote")
"""Ways to change how often the train rows show each class."""

OVERLAP = ("refuse", "drop")
"""What can happen to log rows that stand in the golden set too."""

_BASELINE = "ce"
_TRAINING = ("epochs", "batch_size", "learning_rate", "patience", "optimizer", "device")


@dataclass(frozen=True)
class StudyConfig:
    """What a study is told.

    Everything that can be checked without the data is checked at once, in one sentence each;
    losses and networks are looked up, which needs the extra `torch`.

    Parameters
    ----------
    data : file of the logs: csv, parquet or jsonl; for images an npz file, or a folder with one
        folder for each class
    label : its label column; None for images
    text : the text column; None for tables and images
    golden : file like `data` whose labels can be trusted; None to hold rows of `data` out
    weight : column of the golden set with inverse inclusion probabilities, or None
    largest_weight : the most that any row could weigh by the design of the golden set; by default
        the largest weight seen, and promises say so
    out_of_scope : label of rows that belong to no class; None where there are none
    drop : columns of a table that are left out
    categories : columns of a table that are categories although they hold numbers
    cut : whether the label is a number to be cut into "low" and "high" at the train median
    group : column whose rows stay in one split together, or None
    time : column by which the logs are split into earlier and later rows, or None
    shares : how the logs are split into train, steer and held-out rows; also text like "8:1:1".
        With several candidates half of the steer share is kept to choose among them
    rows : at most so many rows of the logs, drawn at random; None for all
    redact : whether e-mail addresses, phone, order and card numbers are taken out of texts
    overlap : what happens to log rows that stand in the golden set too: "refuse" or "drop"
    candidates : losses; "ce" is added where it is missing
    seeds : each candidate is trained once with each; from 0 to 4294967295, as is `seed`
    model : name of the network, for texts also the folder or hub id of a transformer; None for
        "bilstm" (texts), "mlp" (tables) or "resnet50" (images)
    model_options : arguments of the network
    training : arguments of `TextClassifier`, `TabularClassifier` or `ImageClassifier`, such as
        {"epochs": 20}
    resample : "over", "under" or "smote" the train rows; None to take them as they are
    calibrator : "auto", or the name of a method
    hold : promises, like "item_defective: precision>=0.85"; several targets of one threshold are
        joined by " and "
    confidence : that all promises together are kept
    ood : score of the out-of-scope rule: "energy", "entropy", "max_logit", or "none" for no rule
    actions : for class names what is done when they are acted on
    seed : of the splits
    jobs : candidates trained side by side; 0 for one per core, on a GPU one
    title : what the report is called
    images : whether the rows are images
    image_size : height and width that images are brought to; None to take them as they are
    ensemble : whether each loss also gets a candidate that averages the networks of all seeds
    mc_dropout : for each trained network also a candidate that averages so many thinned copies of
        it; 0 for none
    devices : GPUs (or processes) that train one candidate together

    Examples
    --------
    >>> from calibrant.study import StudyConfig
    >>> config = StudyConfig("tickets.csv", "reason", text="message", candidates=["adafocal"])
    >>> config.candidates, config.kind, config.network
    (('ce', 'adafocal'), 'text', 'bilstm')
    >>> StudyConfig.from_dict(config.to_dict()) == config
    True
    >>> StudyConfig("tickets.csv", "reason", text="message", ood="enrgy")
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: ood must be one of energy, entropy, max_logit, none, got 'enrgy'
    (did you mean 'energy'?).
    """

    data: str
    label: str | None = None
    text: str | None = None
    golden: str | None = None
    weight: str | None = None
    out_of_scope: str | None = None
    drop: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
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
    ood: str = "energy"
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

    def __post_init__(self) -> None:
        checked = {**self._checked_texts(), **self._checked_lists(), **self._checked_values()}
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        check_columns(self)
        check_kind(self)
        if self.weight is not None and self.golden is None:
            raise InputError(
                f"weight names the column {self.weight!r} of a golden set, but there is none: add "
                "golden, or leave weight out."
            )
        weighed = self.golden is not None and (self.weight is not None or self.images)
        checks.check_weighted(self.largest_weight, weighed=weighed)
        for text in self.hold:
            parse_hold(text, flag="--hold")
        _check_calibrator(self.calibrator)
        need_torch("a study")
        check_losses(self.candidates)
        check_network(self.kind, self.network, self.model_options)
        network = {"model": self.network, "model_options": dict(self.model_options)}
        told = {} if self.kind == "table" else network  # of tables the estimator is the network
        check_training(self.kind, self.training, _names(), told)
        check_thinning(self)

    @property
    def kind(self) -> Kind:
        """What the rows are: "text", "table" or "image"."""
        return "image" if self.images else "table" if self.text is None else "text"

    @property
    def network(self) -> str:
        """Name of the network that is trained."""
        return self.model or NETWORKS[self.kind]

    @property
    def compares(self) -> bool:
        """Whether there are several candidates, so that one has to be chosen."""
        return len(self.candidates) * len(self.seeds) > 1 or self.mc_dropout > 0

    @property
    def promises(self) -> tuple[tuple[str | None, tuple[Target, ...]], ...]:
        """For each of `hold` the class that it names, or None, and its targets."""
        return tuple(parse_hold(text, flag="--hold") for text in self.hold)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as values of JSON and TOML; what is None is left out.

        Neither has a word for None within options: there it is written "none". Of images, what
        says nothing about them is left out too.
        """
        out: dict[str, Any] = {TABULAR: True} if self.kind == "table" else {}
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and not (self.images and each.name in NOT_OF_IMAGES):
                out[each.name] = written(value)
        return out

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> StudyConfig:
        """Rebuild from `to_dict`; a key that is no setting is refused with the nearest name."""
        check_names(saved)
        kind = kind_of(saved)
        given = {name: value for name, value in saved.items() if name != TABULAR}
        needed = {"data": "the file with the logs"}
        needed |= {} if kind == "image" else {"label": "the label column"}
        for name, what in needed.items():
            if name not in given:
                raise InputError(f"{name} is missing: name {what} ({checks.flag_of(name)}).")
        for name in ("model_options", "training"):
            if isinstance(given.get(name), Mapping):
                given[name] = read_back(given[name])
        return cls(**given)

    def _checked_texts(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, like in _TEXTS.items():
            value = getattr(self, name)
            needed = name == "data" or (name == "label" and self.images is not True)
            if value is not None or needed:
                out[name] = checks.check_text(name, value, like=like)
        return out

    def _checked_lists(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            name: checks.texts_of(name, getattr(self, name), like=like)
            for name, like in _LISTS.items()
        }
        if _BASELINE not in out["candidates"]:
            out["candidates"] = (_BASELINE, *out["candidates"])
        out["seeds"] = checks.seeds_of(self.seeds)
        for name in ("model_options", "training", "actions"):
            out[name] = checks.options_of(name, getattr(self, name))
        for of, action in out["actions"].items():
            checks.check_text("a class in actions", of, like="item_defective")
            checks.check_text(f"the action for {of!r}", action, like="refund")
        return out

    def _checked_values(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "confidence": checks.confidence_of(self.confidence),
            "cut": checks.truth_of("cut", self.cut),
            "redact": checks.truth_of("redact", self.redact),
            "overlap": checks.check_choice("overlap", self.overlap, OVERLAP),
            "ood": checks.check_choice("ood", self.ood, OOD),
            "seed": as_seed(self.seed),
            "jobs": checks.whole_of("jobs", self.jobs, least=0),
            "images": checks.truth_of("images", self.images),
            "devices": checks.whole_of("devices", self.devices, least=1),
            **checks.averages_of(self.ensemble, self.mc_dropout, self.seeds),
        }
        for name in ("rows", "image_size"):
            if getattr(self, name) is not None:
                out[name] = checks.whole_of(name, getattr(self, name), least=1)
        if self.shares is not None:
            out["shares"] = checks.shares_of(self.shares)
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
    "candidates": "focal:gamma=3",
    "hold": "item_defective: precision>=0.85",
}


def check_names(saved: Mapping[str, Any], *, source: str = "settings") -> None:
    """Refuse a key that is no setting; the nearest name is told.

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
                f"{source}: {name!r} is an option of the training: put it under training (in a "
                "toml file below the line [training])."
            )
        if name not in _names():
            hint = checks.nearest(name, _names())
            known = "" if hint else f": known are {', '.join(_names())}"
            raise InputError(f"{source}: there is no setting {name!r}{hint}{known}.")


def _names() -> Sequence[str]:
    return [*(each.name for each in fields(StudyConfig)), TABULAR]


def _check_calibrator(name: str) -> None:
    if name == "auto":
        return
    from calibrant.calibrators import list_methods

    known = [each for each in list_methods() if each != "chain"]  # a chain is made in Python
    if name not in known:
        raise InputError(
            f"calibrator must be auto or a method, got {name!r}{checks.nearest(name, known)}: "
            f"known are {', '.join(known)}."
        )
