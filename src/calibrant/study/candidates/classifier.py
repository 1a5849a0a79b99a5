"""Build the estimator of a candidate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.study.settings.config import StudyConfig
from calibrant.study.settings.kinds import SMALL, TEXT

if TYPE_CHECKING:
    from calibrant.study.candidates.candidate import StudyCandidate
    from calibrant.training.estimator import Estimator


_SAME_STEPS = {"accumulate", "compile", "device", "devices"}
"""Training options that do not change the training steps."""

_EXCLUDED = {"loss", "seed", "folder", "hooks", "progress", "model"}
"""Parameters that are fingerprinted elsewhere or do not affect the network."""


def build_classifier(
    config: StudyConfig, candidate: StudyCandidate, folder: Path, progress: Callable[[str], None]
) -> Estimator:
    """Build the classifier of a candidate.

    Text networks trained from scratch use the study's small defaults; image networks, table
    networks and pretrained models use the defaults of their estimator.
    """
    from calibrant.study.candidates.epoch_messages import EpochMessages

    shared: dict[str, Any] = {
        "loss": candidate.loss,
        "seed": candidate.seed,
        "folder": folder,
        "devices": config.devices,
    }
    classifier = _build_estimator(config, shared)
    epochs = classifier._options().epochs
    classifier.set_params(hooks=(EpochMessages(candidate.name, epochs, progress),))
    return classifier


def step_options(config: StudyConfig) -> dict[str, Any]:
    """Return all options that the training steps depend on, with defaults filled in.

    No network is built. The loss, the seed and the network name are not included.
    """
    estimator = _build_estimator(config, {})
    names = estimator.get_params(deep=False).keys() - _SAME_STEPS - _EXCLUDED
    options = {name: estimator._resolve(name) for name in names}
    if config.kind == "text":
        options["max_length"] = estimator._new_encoder().max_length
    return options


def _build_estimator(config: StudyConfig, shared: dict[str, Any]) -> Estimator:
    return _BUILDERS[config.kind](config, {**shared, "resample": config.resample})


def _build_table(config: StudyConfig, shared: dict[str, Any]) -> Estimator:
    from calibrant.training import TabularClassifier

    options = {"categories": config.categories, **config.model_options}
    return TabularClassifier(**{**shared, **options, **config.training})


def _build_text(config: StudyConfig, shared: dict[str, Any]) -> Estimator:
    from calibrant.models.pretrained_folder import is_source
    from calibrant.training import TextClassifier

    small = SMALL if config.network == "bilstm" else {}
    defaults = {} if is_source(config.network) else TEXT
    options = {"model": config.network, "model_options": {**small, **config.model_options}}
    return TextClassifier(**{**shared, **options, **defaults, **config.training})


def _build_image(config: StudyConfig, shared: dict[str, Any]) -> Estimator:
    from calibrant.training import ImageClassifier

    options = {"model": config.network, "model_options": dict(config.model_options)}
    return ImageClassifier(**{**shared, **options, **config.training})


_BUILDERS: dict[str, Callable[[StudyConfig, dict[str, Any]], Estimator]] = {
    "table": _build_table,
    "text": _build_text,
    "image": _build_image,
}
