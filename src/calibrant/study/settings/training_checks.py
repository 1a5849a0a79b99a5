"""Checks of losses, networks, MC dropout and training options before any row is read."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError, MissingExtra
from calibrant.study.settings.checks import suggest
from calibrant.study.settings.kinds import SMALL
from calibrant.study.settings.models import (
    FAMILIES,
    SET_BY_STUDY,
    check_family,
    estimator_class,
    is_network,
    is_transformer,
    network_class,
    network_options_of,
    option_names,
    training_names,
    training_of,
)

if TYPE_CHECKING:
    from calibrant.study.settings.config import StudyConfig


_INPUT_SIZES = {
    "text": {"n_tokens": 8},
    "table": {"n_features": 8},
    "image": {"n_channels": 3},
}
_REMEDIES = {
    "text": "",
    "table": "",
    "image": " (for images: --model wrn_26_10 --model-option dropout=0.3)",
    "transformer": " (--model-option pooling=mean --model-option dropout=0.1)",
}

_TORCH_PACKAGES = ("torch", "lightning_fabric", "safetensors", "tokenizers")
_PER_LAYER = {"hidden": "[128,64]", "dropout": "[0.5,0.25]"}
_SIZES = {"n_tokens": 8, "n_features": 8, "n_channels": 3, "n_classes": 2}
_SIZE_OF = {"text": "n_tokens", "table": "n_features", "image": "n_channels"}


def require_torch(what: str) -> None:
    """Raise `MissingExtra` if the extra `torch` is not installed."""
    try:
        importlib.import_module("calibrant.training")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _TORCH_PACKAGES:
            raise
        raise MissingExtra(what, "torch") from None


def check_losses(candidates: Sequence[str]) -> None:
    """Raise `InputError` for unknown losses and invalid loss options."""
    from calibrant.losses import as_loss

    for text in candidates:
        try:
            as_loss(text, class_counts=(1, 1))  # placeholder counts, the rows are not read yet
        except InputError as error:
            raise InputError(f"candidates: {error}") from None


def check_models(config: StudyConfig) -> None:
    """Raise for models of another kind of rows, missing packages and invalid network options.

    Transformers are checked without loading their weights.
    """
    for model in config.models:
        if model in FAMILIES:
            check_family(config, model)
        else:
            _check_network(config, model, network_options_of(config, model))
    known: dict[str, Any] = {}
    for model in config.models:
        known |= network_options_of(config, model)
    unused = next((name for name in config.model_options if name not in known), None)
    if unused is not None:
        raise InputError(
            f"model_options names {unused!r}, which no model of the study takes "
            f"({', '.join(config.models)}): leave it out, or name its network by model (--model "
            "bilstm)."
        )
    if config.freeze and not any(config.is_frozen(model) for model in config.models):
        raise InputError(
            "freeze is about transformers, but the study has none: name one by model (--model "
            "FOLDER), or leave --freeze out."
        )


def _check_network(config: StudyConfig, model: str, options: Mapping[str, Any]) -> None:
    from calibrant.models import build, models
    from calibrant.training.seeds import isolated_randomness

    kind = config.kind
    if is_transformer(config, model):
        return _check_transformer(model, options)
    size = _SIZE_OF[kind]
    known = {
        name: network
        for name, network in models().items()
        if size in inspect.signature(network).parameters
    }
    if model not in known:
        families = [name for name, kinds in FAMILIES.items() if kind in kinds]
        listed = [*families, *known]
        other = ", or give the folder or the hub id of a transformer" if kind == "text" else ""
        raise InputError(
            f"model must be auto or a model for {kind}s, got {model!r}{suggest(model, listed)}: "
            f"choose {' or '.join(listed)}{other}."
        )
    _check_layers(model, options)
    derived = next((name for name in options if name in _SIZES), None)
    if derived is not None:
        raise InputError(
            f"model_options names {derived!r}, which is derived from the data: leave it out."
        )
    sizes = {size: _SIZES[size], "n_classes": _SIZES["n_classes"]}
    with isolated_randomness(0):  # initial weights must not advance the user's random state
        build({**options, **sizes, "model": model}, model="model", options="model_options")
    return None


def _check_transformer(source: str, options: Mapping[str, Any]) -> None:
    from calibrant.models.pretrained import read_pretrained
    from calibrant.models.transformer import options_of

    read_pretrained(source, pooling=options_of(options).get("pooling", "auto"))


def _check_layers(model: str, options: Mapping[str, Any]) -> None:
    """Raise `InputError` for a single number where the network takes one per layer."""
    for name, like in _PER_LAYER.items():
        value = options.get(name)
        if model == "mlp" and name in options and not isinstance(value, list | tuple):
            raise InputError(
                f"model_options: {name} must be a list with one number for each hidden layer, "
                f"like {like}, got {value!r}."
            )


def check_training(config: StudyConfig, settings: Sequence[str]) -> None:
    """Raise `InputError` for training options that are unknown, or that the study sets itself."""
    known = {model: training_names(config, model) for model in config.models}
    takes = list(dict.fromkeys(name for names in known.values() for name in names))
    for name in config.training:
        if name not in takes:
            raise InputError(_describe_unknown(name, takes, settings, config))
    for model in config.models:
        _check_options(config, model)


def _describe_unknown(
    name: str, takes: Sequence[str], settings: Sequence[str], config: StudyConfig
) -> str:
    if name in SET_BY_STUDY:
        return f"training names {name!r}, which the study sets itself: {SET_BY_STUDY[name]}."
    if name in settings:
        return (
            f"training names {name!r}, which is a setting of the study: move it out of "
            "training (in a TOML file above [training])."
        )
    if name in option_names(network_class(config.kind)):
        network = {"text": "bilstm", "table": "mlp", "image": "resnet50"}[config.kind]
        return (
            f"training names {name!r}, which only networks take, but the study trains "
            f"{' and '.join(config.models)}: name a network by model (--model {network}), or leave "
            "it out."
        )
    estimators = " or ".join(
        dict.fromkeys(estimator_class(config, model).__name__ for model in config.models)
    )
    return (
        f"training names {name!r}, which is not an option of {estimators}{suggest(name, takes)}: "
        f"it takes {', '.join(takes)}."
    )


def _check_options(config: StudyConfig, model: str) -> None:
    """Run the checks of a model's estimator, then those of its encoder."""
    from calibrant.data.encoders.text_encoder import TextEncoder

    options = training_of(config, model)
    if model in FAMILIES or config.is_frozen(model):
        return  # these check their options when they are fitted, which takes seconds
    network = {"model": model, "model_options": network_options_of(config, model)}
    if config.kind == "table":  # the estimator takes the network's options itself
        network = {}
    classifier = estimator_class(config, model)(**network, **options)
    classifier._options()
    encoder = classifier._new_encoder() if config.kind == "text" else None
    if isinstance(encoder, TextEncoder):
        encoder._check_options()


def check_mc_dropout(config: StudyConfig) -> None:
    """Raise `InputError` for `mc_dropout` without a network that has dropout.

    Transformers are checked without loading their weights.
    """
    if not config.mc_dropout:
        return
    networks = [model for model in config.models if is_network(config, model)]
    if not networks:
        raise InputError(
            f"mc_dropout averages passes of a network, but the study trains only "
            f"{' and '.join(config.models)}: name a network by model, or leave --mc-dropout out."
        )
    for model in networks:
        _check_dropout(config, model)


def _check_dropout(config: StudyConfig, model: str) -> None:
    from calibrant.models import MCDropout
    from calibrant.training.seeds import isolated_randomness

    pretrained = is_transformer(config, model)
    try:
        with isolated_randomness(0):  # building draws initial weights
            build = _build_transformer if pretrained else _build_network
            MCDropout(build(config, model), passes=config.mc_dropout)
    except InputError as error:
        remedy = _REMEDIES["transformer" if pretrained else config.kind]
        reason = f"{str(error).rstrip('.')}{remedy}."
        raise InputError(f"mc_dropout averages passes with dropout, but {reason}") from None


def _build_network(config: StudyConfig, model: str) -> Any:
    from calibrant.models import build

    sizes = {**_INPUT_SIZES[config.kind], "n_classes": 2, "model": model}
    return build({**_network_options(config, model), **sizes})


def _build_transformer(config: StudyConfig, model: str) -> Any:
    """Return the transformer without its weights."""
    from calibrant.models import Transformer
    from calibrant.models.architectures import config_from, skeleton
    from calibrant.models.pretrained import read_pretrained
    from calibrant.models.transformer import options_of

    options = options_of(network_options_of(config, model))
    source = read_pretrained(model, pooling=options.get("pooling", "auto"))
    network = skeleton(config_from(source.architecture, 2), source.pooling)
    return Transformer(source.architecture, 2, source.pooling, options.get("dropout"), network)


def _network_options(config: StudyConfig, model: str) -> dict[str, Any]:
    """Return the network options that the study would train with."""
    options = network_options_of(config, model)
    if config.kind != "table":
        return {**(SMALL if model == "bilstm" else {}), **options}
    from calibrant.training import TabularClassifier

    table = TabularClassifier(**options)
    return {"hidden": table.hidden, "dropout": table.dropout, "batch_norm": table.batch_norm}
