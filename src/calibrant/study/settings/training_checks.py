"""Checks of losses, networks, MC dropout and training options before any row is read."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError, MissingExtra
from calibrant.study.settings.checks import suggest
from calibrant.study.settings.kinds import SMALL

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
_SET_BY_STUDY = {
    "loss": "name losses as candidates (--candidates)",
    "seed": "give seeds (--seeds)",
    "folder": "name the folder of the study (--out)",
    "progress": "leave it out",
    "hooks": "leave it out",
    "model": "choose the network by model (--model)",
    "model_options": "give model_options (--model-option)",
    "resample": "give resample (--resample)",
    "steer_share": "give shares (--shares)",
    "drop": "give drop (--drop)",
    "categories": "give categories (--category)",
    "hidden": "give it to the network (--model-option hidden=...)",
    "dropout": "give it to the network (--model-option dropout=...)",
    "batch_norm": "give it to the network (--model-option batch_norm=...)",
    "devices": "give devices (--devices)",
}
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


def check_network(kind: str, model: str, options: Mapping[str, Any]) -> None:
    """Raise `InputError` for a network of another kind of rows, and invalid network options.

    Transformers are checked without loading their weights.
    """
    from calibrant.models import build, models
    from calibrant.models.pretrained_folder import is_source
    from calibrant.training.seeds import isolated_randomness

    if kind == "text" and is_source(model):
        return _check_transformer(model, options)
    size = _SIZE_OF[kind]
    known = {
        name: network
        for name, network in models().items()
        if size in inspect.signature(network).parameters
    }
    if model not in known:
        other = ", or give the folder or the hub id of a transformer" if kind == "text" else ""
        raise InputError(
            f"model must be a network for {kind}s, got {model!r}{suggest(model, list(known))}: "
            f"choose {' or '.join(known)}{other}."
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


def check_training(
    kind: str,
    training: Mapping[str, Any],
    settings: Sequence[str],
    network: Mapping[str, Any] | None = None,
) -> None:
    """Raise `InputError` for training options that are unknown, or that the study sets itself."""
    from calibrant.data.encoders.text_encoder import TextEncoder
    from calibrant.training import ImageClassifier, TabularClassifier, TextClassifier

    estimators: dict[str, Any] = {
        "text": TextClassifier,
        "table": TabularClassifier,
        "image": ImageClassifier,
    }
    estimator = estimators[kind]
    takes = [name for name in inspect.signature(estimator).parameters if name not in _SET_BY_STUDY]
    for name in training:
        if name in takes:
            continue
        if name in _SET_BY_STUDY:
            raise InputError(
                f"training names {name!r}, which the study sets itself: {_SET_BY_STUDY[name]}."
            )
        if name in settings:
            raise InputError(
                f"training names {name!r}, which is a setting of the study: move it out of "
                "training (in a TOML file above [training])."
            )
        raise InputError(
            f"training names {name!r}, which is not an option of {estimator.__name__}"
            f"{suggest(name, takes)}: it takes {', '.join(takes)}."
        )
    classifier = estimator(**(network or {}), **training)
    classifier._options()  # run the checks of the training loop, then those of the encoder
    encoder = classifier._new_encoder() if kind == "text" else None
    if isinstance(encoder, TextEncoder):
        encoder._check_options()


def check_mc_dropout(config: StudyConfig) -> None:
    """Raise `InputError` for `mc_dropout` with a network without dropout.

    Transformers are checked without loading their weights.
    """
    from calibrant.models import MCDropout
    from calibrant.models.pretrained_folder import is_source
    from calibrant.training.seeds import isolated_randomness

    if not config.mc_dropout:
        return
    pretrained = config.kind == "text" and is_source(config.network)
    try:
        with isolated_randomness(0):  # building draws initial weights
            network = _build_transformer(config) if pretrained else _build_network(config)
            MCDropout(network, passes=config.mc_dropout)
    except InputError as error:
        remedy = _REMEDIES["transformer" if pretrained else config.kind]
        reason = f"{str(error).rstrip('.')}{remedy}."
        raise InputError(f"mc_dropout averages passes with dropout, but {reason}") from None


def _build_network(config: StudyConfig) -> Any:
    from calibrant.models import build

    sizes = {**_INPUT_SIZES[config.kind], "n_classes": 2, "model": config.network}
    return build({**_network_options(config), **sizes})


def _build_transformer(config: StudyConfig) -> Any:
    """Return the transformer without its weights."""
    from calibrant.models import Transformer
    from calibrant.models.architectures import config_from, skeleton
    from calibrant.models.pretrained import read_pretrained
    from calibrant.models.transformer import options_of

    options = options_of(config.model_options)
    source = read_pretrained(config.network, pooling=options.get("pooling", "auto"))
    network = skeleton(config_from(source.architecture, 2), source.pooling)
    return Transformer(source.architecture, 2, source.pooling, options.get("dropout"), network)


def _network_options(config: StudyConfig) -> dict[str, Any]:
    """Return the network options that the study would train with."""
    if config.kind != "table":
        return {**(SMALL if config.network == "bilstm" else {}), **config.model_options}
    from calibrant.training import TabularClassifier

    model = TabularClassifier(**config.model_options)
    return {"hidden": model.hidden, "dropout": model.dropout, "batch_norm": model.batch_norm}
