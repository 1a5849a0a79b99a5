"""MC dropout asked of a network that drops nothing, told before any of it is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError
from calibrant.study.settings.defaults import SMALL

if TYPE_CHECKING:
    from calibrant.study.settings.config import StudyConfig

__all__ = ["check_thinning"]

_SIZES = {
    "text": {"n_tokens": 8},
    "table": {"n_features": 8},
    "image": {"n_channels": 3},
}
_REMEDIES = {
    "text": "",
    "table": "",
    "image": " (of images: --model wrn_26_10 --model-option dropout=0.3)",
    "transformer": " (--model-option pooling=mean --model-option dropout=0.1)",
}


def check_thinning(config: StudyConfig) -> None:
    """Refuse `mc_dropout` where the network has no dropout.

    Of a transformer everything is looked at but its weights.
    """
    from calibrant.models import MCDropout
    from calibrant.models.pretrained_folder import is_source
    from calibrant.training.seeds import own_randomness

    if not config.mc_dropout:
        return
    pretrained = config.kind == "text" and is_source(config.network)
    try:
        with own_randomness(0):  # first weights are drawn
            network = _transformer(config) if pretrained else _network(config)
            MCDropout(network, passes=config.mc_dropout)
    except InputError as error:
        remedy = _REMEDIES["transformer" if pretrained else config.kind]
        how = f"{str(error).rstrip('.')}{remedy}."
        raise InputError(f"mc_dropout averages thinned copies of a network, but {how}") from None


def _network(config: StudyConfig) -> Any:
    from calibrant.models import build

    given = {**_SIZES[config.kind], "n_classes": 2, "model": config.network}
    return build({**_options(config), **given})


def _transformer(config: StudyConfig) -> Any:
    """Return the transformer without numbers in it."""
    from calibrant.models import Transformer
    from calibrant.models.architectures import config_from, skeleton
    from calibrant.models.pretrained import read_pretrained
    from calibrant.models.transformer import options_of

    given = options_of(config.model_options)
    found = read_pretrained(config.network, pooling=given.get("pooling", "auto"))
    network = skeleton(config_from(found.architecture, 2), found.pooling)
    return Transformer(found.architecture, 2, found.pooling, given.get("dropout"), network)


def _options(config: StudyConfig) -> dict[str, Any]:
    """Return the options of the network as the study would train it."""
    if config.kind != "table":
        return {**(SMALL if config.network == "bilstm" else {}), **config.model_options}
    from calibrant.training import TabularClassifier

    made = TabularClassifier(**config.model_options)
    return {"hidden": made.hidden, "dropout": made.dropout, "batch_norm": made.batch_norm}
