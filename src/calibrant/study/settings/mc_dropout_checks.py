"""Check before training that a network has dropout for MC dropout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError
from calibrant.study.settings.defaults import SMALL

if TYPE_CHECKING:
    from calibrant.study.settings.config import StudyConfig


_SIZES = {
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

    sizes = {**_SIZES[config.kind], "n_classes": 2, "model": config.network}
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
