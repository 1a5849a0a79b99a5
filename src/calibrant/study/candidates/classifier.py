"""Build the estimator of a candidate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from calibrant.study.candidates.candidate import StudyCandidate
from calibrant.study.settings.config import StudyConfig
from calibrant.study.settings.kinds import SMALL, TEXT
from calibrant.study.settings.models import (
    FAMILIES,
    estimator_class,
    is_network,
    is_transformer,
    network_options_of,
    training_of,
)

_SAME_STEPS = {"accumulate", "compile", "device", "devices", "n_jobs", "cache"}
"""Training options that do not change what is learned."""

_EXCLUDED = {"loss", "seed", "folder", "hooks", "progress", "model"}
"""Parameters that are fingerprinted elsewhere or do not affect the model."""

EMBEDDINGS = "embeddings"
"""Folder beside the candidates with the embeddings of frozen transformers."""


def build_classifier(
    config: StudyConfig, candidate: StudyCandidate, folder: Path, progress: Callable[[str], None]
) -> Any:
    """Build the classifier of a candidate; `folder` is for its checkpoints.

    Text networks trained from scratch use the study's small defaults; other models use the
    defaults of their estimator.
    """
    shared: dict[str, Any] = {"loss": candidate.loss, "seed": candidate.seed}
    if not is_network(config, candidate.model):
        progress(f"{candidate.name}: training")
        if config.is_frozen(candidate.model):
            shared["cache"] = folder.parent.parent / EMBEDDINGS
        return _build_estimator(config, candidate.model, shared)
    from calibrant.study.candidates.epoch_messages import EpochMessages

    shared |= {"folder": folder, "devices": config.devices}
    classifier = _build_estimator(config, candidate.model, shared)
    epochs = classifier._options().epochs
    classifier.set_params(hooks=(EpochMessages(candidate.name, epochs, progress),))
    return classifier


def step_options(config: StudyConfig, model: str) -> dict[str, Any]:
    """Return all options that training a model depends on, with defaults filled in.

    No network is built. The loss, the seed and the name of the model are not included.
    """
    estimator = _build_estimator(config, model, {})
    options = {
        name: estimator._resolve(name) if hasattr(estimator, "_resolve") else value
        for name, value in estimator.get_params(deep=False).items()
        if name not in _SAME_STEPS | _EXCLUDED
    }
    if config.kind == "text" and is_network(config, model):
        options["max_length"] = estimator._new_encoder().max_length
    return options


def _build_estimator(config: StudyConfig, model: str, shared: dict[str, Any]) -> Any:
    options = {**_model_options(config, model), **training_of(config, model)}
    return estimator_class(config, model)(**shared, resample=config.resample, **options)


def _model_options(config: StudyConfig, model: str) -> dict[str, Any]:
    """Return what a model is built from, and the study's own defaults."""
    options = network_options_of(config, model)
    if model in FAMILIES:
        return _reading(config) if config.kind == "table" else {}
    if config.is_frozen(model):
        return {"model": model}
    if config.kind == "table":
        return {**_reading(config), **options}
    if config.kind == "image":
        return {"model": model, "model_options": options}
    small = SMALL if model == "bilstm" else {}
    defaults = {} if is_transformer(config, model) else TEXT
    return {"model": model, "model_options": {**small, **options}, **defaults}


def _reading(config: StudyConfig) -> dict[str, Any]:
    """Return how the columns of a table are read."""
    options = {name: getattr(config, name) for name in ("decimal", "missing", "dates")}
    return {"categories": config.category_features, **options}
