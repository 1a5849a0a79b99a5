"""The classifier that a candidate is: which estimator, with which options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.study.candidate import Candidate
from calibrant.study.config import StudyConfig
from calibrant.study.defaults import SMALL, TEXT

if TYPE_CHECKING:
    from calibrant.training.estimator import Estimator

__all__ = ["classifier_of"]


def classifier_of(
    config: StudyConfig, candidate: Candidate, folder: Path, tell: Callable[[str], None]
) -> Estimator:
    """Make the classifier of a candidate.

    A network for texts that is trained from nothing gets the study's own small defaults; images,
    tables and models that were trained before get those of their estimator.

    Parameters
    ----------
    config : the settings
    candidate : which one
    folder : where its checkpoints go
    tell : gets a line after each epoch
    """
    from calibrant.study.epoch_messages import EpochMessages

    shared: dict[str, Any] = {
        "loss": candidate.loss,
        "seed": candidate.seed,
        "folder": folder,
        "resample": config.resample,
        "devices": config.devices,
    }
    made = _MADE[config.kind](config, shared)
    made.set_params(hooks=(EpochMessages(candidate.name, made._options().epochs, tell),))
    return made


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
