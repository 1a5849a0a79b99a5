"""MC dropout asked of a network that drops nothing, told before any of it is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError
from calibrant.study.defaults import SMALL

if TYPE_CHECKING:
    from calibrant.study.config import StudyConfig

__all__ = ["check_thinning"]

_SIZES = {
    "text": {"n_tokens": 8},
    "table": {"n_features": 8},
    "image": {"n_channels": 3},
}


def check_thinning(config: StudyConfig) -> None:
    """Refuse `mc_dropout` where the network has no dropout.

    A transformer is not looked at: its weights would have to be read, and it has dropout.

    Parameters
    ----------
    config : the settings, of which the network was found to be right
    """
    from calibrant.models import MCDropout, build
    from calibrant.models.pretrained_folder import is_source
    from calibrant.training.seeds import own_randomness

    if not config.mc_dropout or (config.kind == "text" and is_source(config.network)):
        return
    given = {**_SIZES[config.kind], "n_classes": 2, "model": config.network}
    try:
        with own_randomness(0):  # first weights are drawn
            MCDropout(build({**_options(config), **given}), passes=config.mc_dropout)
    except InputError as error:
        remedy = " (of images: --model wrn_26_10 --model-option dropout=0.3)"
        how = f"{str(error).rstrip('.')}{remedy if config.images else ''}."
        raise InputError(f"mc_dropout averages thinned copies of a network, but {how}") from None


def _options(config: StudyConfig) -> dict[str, Any]:
    """Return the options of the network as the study would train it."""
    if config.kind != "table":
        return {**(SMALL if config.network == "bilstm" else {}), **config.model_options}
    from calibrant.training import TabularClassifier

    made = TabularClassifier(**config.model_options)
    return {"hidden": made.hidden, "dropout": made.dropout, "batch_norm": made.batch_norm}
