"""Models of a study: the families that are raced, and which options each of them takes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError, MissingExtra
from calibrant.study.settings.kinds import Kind

if TYPE_CHECKING:
    from calibrant.study.settings.config import StudyConfig

AUTO = "auto"
"""The model setting that races the families of `RACES`."""

RACES: Mapping[Kind, tuple[str, ...]] = {
    "table": ("boosting", "linear", "mlp"),
    "text": ("ngrams",),
    "image": ("small_cnn", "linear"),
}
"""Families that "auto" races, by kind. Of two that the choice rows do not separate, the first wins:
it is the one that usually wins on data of this kind."""

FAMILIES: Mapping[str, tuple[Kind, ...]] = {
    "boosting": ("table",),
    "linear": ("table", "image"),
    "ngrams": ("text",),
}
"""Models without epochs of a network, and the kinds of rows that they read."""

_EXTRAS = {"boosting": ("lightgbm", "boosting")}
"""Package and extra that a model needs beyond `torch`."""

SET_BY_STUDY = {
    "loss": "name losses as candidates (--candidates)",
    "seed": "give seeds (--seeds)",
    "folder": "name the folder of the study (--out)",
    "cache": "leave it out",
    "progress": "leave it out",
    "hooks": "leave it out",
    "model": "choose the network by model (--model)",
    "model_options": "give model_options (--model-option)",
    "resample": "give resample (--resample)",
    "steer_share": "give shares (--shares)",
    "drop": "give drop (--drop)",
    "categories": "give categories (--category)",
    "decimal": "give decimal (--decimal)",
    "missing": "give missing (--missing)",
    "dates": "give dates (--dates)",
    "hidden": "give it to the network (--model-option hidden=...)",
    "dropout": "give it to the network (--model-option dropout=...)",
    "batch_norm": "give it to the network (--model-option batch_norm=...)",
    "devices": "give devices (--devices)",
}
"""Parameters of estimators that a study sets itself, and where to set them."""


def is_installed(model: str) -> bool:
    """Return whether the packages of a model are installed."""
    needed = _EXTRAS.get(model)
    return needed is None or find_spec(needed[0]) is not None


def parse_models(text: str | None, kind: Kind) -> tuple[str, ...]:
    """Return the models that a setting names, "auto" replaced by the families of the kind.

    Examples
    --------
    >>> parse_models("ngrams,bilstm", "text"), parse_models("auto,bilstm", "text")
    (('ngrams', 'bilstm'), ('ngrams', 'bilstm'))
    """
    named: list[str] = []
    for part in (text or AUTO).split(","):
        name = part.strip()
        if not name:
            raise InputError(
                f"model has an empty name, got {text!r}: give names like ngrams,bilstm."
            )
        raced = [each for each in RACES[kind] if is_installed(each)] if name == AUTO else [name]
        named += raced
    return tuple(dict.fromkeys(named))


def left_out(text: str | None, kind: Kind) -> tuple[str, ...]:
    """Return the families that "auto" leaves out because a package is missing."""
    if AUTO not in [part.strip() for part in (text or AUTO).split(",")]:
        return ()
    return tuple(each for each in RACES[kind] if not is_installed(each))


def note_left_out(config: StudyConfig) -> list[str]:
    """Return a note on each family that was left out of the race."""
    return [
        f"The model '{name}' was left out because its package is not installed: pip install "
        f"'calibrant[{_EXTRAS[name][1]}]' and run the same command again."
        for name in left_out(config.model, config.kind)
    ]


def is_transformer(config: StudyConfig, model: str) -> bool:
    """Return whether a model is the folder or the hub id of a transformer."""
    from calibrant.models.pretrained_folder import is_source

    return config.kind == "text" and model not in FAMILIES and is_source(model)


def is_network(config: StudyConfig, model: str) -> bool:
    """Return whether a model is a network of the training loop, with epochs and seeds."""
    return model not in FAMILIES and not config.is_frozen(model)


def check_family(config: StudyConfig, model: str) -> None:
    """Raise for a family of another kind of rows, or one whose package is missing."""
    kinds = FAMILIES[model]
    if config.kind not in kinds:
        readable = " and ".join(f"{kind}s" for kind in kinds)
        others = " or ".join((*RACES[config.kind], *_known_networks(config.kind)))
        raise InputError(
            f"model {model!r} reads {readable}, but the rows are {config.kind}s: choose {others}."
        )
    if not is_installed(model):
        raise MissingExtra(f"model {model!r}", _EXTRAS[model][1])


def _known_networks(kind: Kind) -> list[str]:
    return ["bilstm", "text_cnn"] if kind == "text" else []


def estimator_class(config: StudyConfig, model: str) -> Any:
    """Return the class of the estimator of a model."""
    from calibrant import training

    if model == "boosting":
        from calibrant.boosting import BoostingClassifier

        return BoostingClassifier
    if model == "ngrams":
        return training.NgramClassifier
    if model == "linear":
        images = config.kind == "image"
        return training.LinearImageClassifier if images else training.LinearClassifier
    if config.is_frozen(model):
        return training.FrozenTransformerClassifier
    return network_class(config.kind)


def network_class(kind: Kind) -> Any:
    """Return the class of the networks for a kind of rows."""
    from calibrant import training

    return {
        "text": training.TextClassifier,
        "table": training.TabularClassifier,
        "image": training.ImageClassifier,
    }[kind]


def training_names(config: StudyConfig, model: str) -> list[str]:
    """Return the names of the training options that a model takes."""
    return option_names(estimator_class(config, model))


def option_names(estimator: Any) -> list[str]:
    """Return the parameters of an estimator that are training options of a study."""
    return [name for name in inspect.signature(estimator).parameters if name not in SET_BY_STUDY]


def training_of(config: StudyConfig, model: str) -> dict[str, Any]:
    """Return the training options of a study that a model takes; others are for its rivals."""
    known = training_names(config, model)
    return {name: value for name, value in config.training.items() if name in known}


def network_options_of(config: StudyConfig, model: str) -> dict[str, Any]:
    """Return the network options of a study that a model takes; a lone model gets all of them."""
    from calibrant.models.registry import models

    if model in FAMILIES or config.is_frozen(model):
        return {}
    options = dict(config.model_options)
    if len(config.models) == 1:
        return options
    if is_transformer(config, model):
        return {name: value for name, value in options.items() if name in ("pooling", "dropout")}
    network = models().get(model)
    if network is None:
        return options
    known = inspect.signature(network).parameters
    return {name: value for name, value in options.items() if name in known}
