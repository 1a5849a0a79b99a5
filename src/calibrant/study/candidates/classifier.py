"""The classifier that a candidate is: which estimator, with which options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.study.settings.config import StudyConfig
from calibrant.study.settings.defaults import SMALL, TEXT

if TYPE_CHECKING:
    from calibrant.study.candidates.candidate import Candidate
    from calibrant.training.estimator import Estimator

__all__ = ["classifier_of", "steps_of"]

_SAME_STEPS = {"accumulate", "compile", "device", "devices"}
"""Options of the training that may change while a network is trained: its steps stay the same."""

_OWN = {"loss", "seed", "folder", "hooks", "progress", "model"}
"""Parameters that are told apart elsewhere, or say nothing about the network."""


def classifier_of(
    config: StudyConfig, candidate: Candidate, folder: Path, tell: Callable[[str], None]
) -> Estimator:
    """Make the classifier of a candidate.

    A network for texts that is trained from nothing gets the study's own small defaults; images,
    tables and models that were trained before get those of their estimator.
    """
    from calibrant.study.candidates.epoch_messages import EpochMessages

    shared: dict[str, Any] = {
        "loss": candidate.loss,
        "seed": candidate.seed,
        "folder": folder,
        "devices": config.devices,
    }
    made = _made(config, shared)
    made.set_params(hooks=(EpochMessages(candidate.name, made._options().epochs, tell),))
    return made


def steps_of(config: StudyConfig) -> dict[str, Any]:
    """Return all options that the steps of a training depend on, usual ones as what they are now.

    No network is built. Its loss, its seed and which network it is are not among them.
    """
    made = _made(config, {})
    names = made.get_params(deep=False).keys() - _SAME_STEPS - _OWN
    found = {name: made._asked(name) for name in names}
    if config.kind == "text":
        found["max_length"] = made._new_encoder().max_length
    return found


def _made(config: StudyConfig, shared: dict[str, Any]) -> Estimator:
    return _MADE[config.kind](config, {**shared, "resample": config.resample})


def _table(config: StudyConfig, shared: dict[str, Any]) -> Estimator:
    from calibrant.training import TabularClassifier

    own = {"categories": config.categories, **config.model_options}
    return TabularClassifier(**{**shared, **own, **config.training})


def _text(config: StudyConfig, shared: dict[str, Any]) -> Estimator:
    from calibrant.models.pretrained_folder import is_source
    from calibrant.training import TextClassifier

    small = SMALL if config.network == "bilstm" else {}
    usual = {} if is_source(config.network) else TEXT
    own = {"model": config.network, "model_options": {**small, **config.model_options}}
    return TextClassifier(**{**shared, **own, **usual, **config.training})


def _image(config: StudyConfig, shared: dict[str, Any]) -> Estimator:
    from calibrant.training import ImageClassifier

    own = {"model": config.network, "model_options": dict(config.model_options)}
    return ImageClassifier(**{**shared, **own, **config.training})


_MADE: dict[str, Callable[[StudyConfig, dict[str, Any]], Estimator]] = {
    "table": _table,
    "text": _text,
    "image": _image,
}
