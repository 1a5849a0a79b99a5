"""What a study asks of losses, networks and estimators, checked before any row is read."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.errors import InputError, MissingExtra
from calibrant.study.settings.checks import nearest

__all__ = ["check_losses", "check_network", "check_training", "need_torch"]

_TORCH = ("torch", "lightning_fabric", "safetensors", "tokenizers")
_OWN = {
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
_LAYERS = {"hidden": "[128,64]", "dropout": "[0.5,0.25]"}
_SIZES = {"n_tokens": 8, "n_features": 8, "n_channels": 3, "n_classes": 2}
_SIZE_OF = {"text": "n_tokens", "table": "n_features", "image": "n_channels"}


def need_torch(what: str) -> None:
    """Say in one sentence that the extra is missing, where it is."""
    try:
        importlib.import_module("calibrant.training")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _TORCH:
            raise
        raise MissingExtra(what, "torch") from None


def check_losses(candidates: Sequence[str]) -> None:
    """Refuse losses that are not there, and options that they cannot take."""
    from calibrant.losses import as_loss

    for text in candidates:
        try:
            as_loss(text, class_counts=(1, 1))  # those of the train rows come later
        except InputError as error:
            raise InputError(f"candidates: {error}") from None


def check_network(kind: str, model: str, options: Mapping[str, Any]) -> None:
    """Refuse a network that reads something else, and options that it cannot take.

    Of a transformer everything is looked at but its weights.
    """
    from calibrant.models import build, models
    from calibrant.models.pretrained_folder import is_source
    from calibrant.training.seeds import own_randomness

    if kind == "text" and is_source(model):
        return _check_transformer(model, options)
    size = _SIZE_OF[kind]
    known = {
        name: made for name, made in models().items() if size in inspect.signature(made).parameters
    }
    if model not in known:
        other = ", or name the folder of a transformer or its id on a hub" if kind == "text" else ""
        raise InputError(
            f"model must be a network for {kind}s, got {model!r}{nearest(model, list(known))}: "
            f"choose {' or '.join(known)}{other}."
        )
    _check_layers(model, options)
    settled = next((name for name in options if name in _SIZES), None)
    if settled is not None:
        raise InputError(f"model_options names {settled!r}, which the data settle: leave it out.")
    sizes = {size: _SIZES[size], "n_classes": _SIZES["n_classes"]}
    with own_randomness(0):  # first weights are drawn, which must not move the user's randomness
        build({**options, **sizes, "model": model}, model="model", options="model_options")
    return None


def _check_transformer(source: str, options: Mapping[str, Any]) -> None:
    from calibrant.models.pretrained import read_pretrained
    from calibrant.models.transformer import options_of

    read_pretrained(source, pooling=options_of(options).get("pooling", "auto"))


def _check_layers(model: str, options: Mapping[str, Any]) -> None:
    """Refuse one number where the network has one for each layer."""
    for name, like in _LAYERS.items():
        given = options.get(name)
        if model == "mlp" and name in options and not isinstance(given, list | tuple):
            raise InputError(
                f"model_options: {name} must be a list with one number for each hidden layer, "
                f"like {like}, got {given!r}."
            )


def check_training(
    kind: str,
    training: Mapping[str, Any],
    settings: Sequence[str],
    network: Mapping[str, Any] | None = None,
) -> None:
    """Refuse training options that the estimator lacks, or that the study sets itself."""
    from calibrant.data.encoders.text_encoder import TextEncoder
    from calibrant.training import ImageClassifier, TabularClassifier, TextClassifier

    estimators: dict[str, Any] = {
        "text": TextClassifier,
        "table": TabularClassifier,
        "image": ImageClassifier,
    }
    estimator = estimators[kind]
    takes = [name for name in inspect.signature(estimator).parameters if name not in _OWN]
    for name in training:
        if name in takes:
            continue
        if name in _OWN:
            raise InputError(f"training names {name!r}, which the study sets itself: {_OWN[name]}.")
        if name in settings:
            raise InputError(
                f"training names {name!r}, a setting of the study: give it beside training (in a "
                "toml file above [training])."
            )
        raise InputError(
            f"training names {name!r}, which {estimator.__name__} lacks{nearest(name, takes)}: it "
            f"takes {', '.join(takes)}."
        )
    made = estimator(**(network or {}), **training)
    made._options()  # let the loop's own checks look at what is for it, and those of the encoder
    encoder = made._new_encoder() if kind == "text" else None
    if isinstance(encoder, TextEncoder):
        encoder._check_options()
