"""Architectures of the transformers library: networks made from a description alone."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from calibrant.errors import InputError, MissingExtra

__all__ = [
    "backbone_options",
    "check_readable",
    "config_from",
    "described",
    "library",
    "network_from",
    "padding_of",
    "positions_of",
    "quiet",
    "reason_of",
    "rows_of",
    "skeleton",
]

# What says nothing about the network: where it came from, what its old classes were called, who
# wrote it down, and the kind of numbers that its file has.
_DROPPED = (
    "_name_or_path", "architectures", "auto_map", "custom_pipelines", "dtype", "finetuning_task",
    "id2label", "label2id", "num_labels", "problem_type", "task_specific_params", "torch_dtype",
    "transformers_version",
)  # fmt: skip

# What says how to compute rather than what: names of code that the library would fetch and run.
_HOW = ("attn_implementation", "experts_implementation", "quantization_config", "use_kernels")

# Parts of another library, or with weights of their own, which the library would fetch.
_FETCHED_PARTS = ("use_pretrained_backbone", "use_timm_backbone")
_FETCHED_CODE = ("mra", "rwkv", "yoso")
"""Architectures that fetch code of their own when they are built."""

_OTHER_INPUTS = ("pixel", "image", "video", "audio", "input_features", "input_values")


def library() -> Any:
    """Return the transformers library, or say what to install."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import transformers
            import transformers.models.auto.modeling_auto
    except ImportError:
        raise MissingExtra("a transformer", "transformers") from None
    return transformers


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the library's bars and warnings off stderr for the time being."""
    logging = library().utils.logging
    told, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(told)
        if bars:
            logging.enable_progress_bar()


def described(config: Any) -> dict[str, Any]:
    """Return what a network is built from as JSON: no path, no labels, no version."""
    return dict(_without_origin(json.loads(json.dumps(config.to_diff_dict(), default=str))))


def _without_origin(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {name: _without_origin(value) for name, value in part.items() if _is_kept(name)}
    return [_without_origin(each) for each in part] if isinstance(part, list | tuple) else part


def _is_kept(name: Any) -> bool:
    """Say whether a setting is of the network; what begins with "_" is the library's own."""
    return name not in (*_DROPPED, *_HOW) and not str(name).startswith("_")


def config_from(architecture: Mapping[str, Any], n_classes: int) -> Any:
    """Return the library's config object of a description; refuse one that it does not know."""
    kind = architecture.get("model_type") if isinstance(architecture, Mapping) else None
    if not isinstance(kind, str):
        raise InputError(
            "architecture must be a dict with a 'model_type' like 'bert', as config.json of a "
            f"transformer has it, got {architecture!r:.80}."
        )
    hub = library()
    if kind not in hub.CONFIG_MAPPING:
        raise InputError(
            f"the architecture {kind!r} is not known to transformers {hub.__version__}: install a "
            "newer version of that library, or choose another model."
        )
    _check_kind(kind)
    _check_parts(architecture)
    given = {name: value for name, value in architecture.items() if name != "model_type"}
    with quiet():
        try:
            made = hub.AutoConfig.for_model(kind, **_without_origin(given))
            made.num_labels = n_classes
        except Exception as error:  # every architecture checks its numbers in its own way
            raise _no_network(kind, error) from error
    made.use_cache = False  # of no use where a text is read once, and it takes memory
    return made


def _check_kind(kind: str) -> None:
    """Refuse what is no network for texts alone: others may fetch weights when they are built.

    Those for texts have a head for their classes or for their words.
    """
    hub = library()
    auto = hub.models.auto.modeling_auto
    heads = (
        auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
        auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    )
    for_texts = any(kind in head for head in heads) and kind not in _FETCHED_CODE
    if for_texts:
        made = hub.CONFIG_MAPPING[kind]
        taken = _parameters(auto.MODEL_MAPPING.get(made, None), "forward")
        other = [name for name in taken for part in _OTHER_INPUTS if part in name]
        for_texts = not other and hub.AutoConfig not in made.sub_configs.values()
    if not for_texts:
        raise InputError(
            f"the architecture {kind!r} is not for texts alone, or fetches parts of itself: choose "
            "one that reads texts, such as 'bert' or 'roberta'."
        )


def _check_parts(part: Any) -> None:
    """Refuse a description, however deep, of a part that would be fetched."""
    if isinstance(part, Mapping):
        asked = [name for name in _FETCHED_PARTS if part.get(name)]
        asked += ["backbone"] if isinstance(part.get("backbone"), str) else []
        if asked:
            raise InputError(
                f"architecture names {asked[0]!r}, a part that would be fetched, which is never "
                "done: choose a model that is whole."
            )
    if isinstance(part, Mapping | list | tuple):
        for each in part.values() if isinstance(part, Mapping) else part:
            _check_parts(each)


def network_from(config: Any, pooling: str) -> nn.Module:
    """Make a network with first weights: with its own head ("own"), or without one ("mean")."""
    hub = library()
    check_readable(config, pooling)
    with quiet():
        try:
            if pooling == "own":
                made = hub.AutoModelForSequenceClassification.from_config(config)
            else:
                made = hub.AutoModel.from_config(config, **backbone_options(config))
        except Exception as error:  # as above
            raise _no_network(config.model_type, error) from error
    found: nn.Module = made.float()
    return found


def skeleton(config: Any, pooling: str) -> nn.Module:
    """Make the same network without numbers in it, which takes no time and no memory."""
    with torch.device("meta"):
        return network_from(config, pooling)


def check_readable(config: Any, pooling: str) -> None:
    """Refuse an architecture that cannot tell texts apart."""
    auto = library().models.auto.modeling_auto
    kind = config.model_type
    if getattr(config, "is_encoder_decoder", False):
        raise InputError(
            f"the architecture {kind!r} writes texts from texts (an encoder with a decoder): "
            "choose one that reads only, such as 'bert' or 'roberta'."
        )
    if pooling == "own" and type(config) not in auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
        raise InputError(
            f"the architecture {kind!r} has no head for classes of texts: choose another model, or "
            "pooling='mean' where it reads texts."
        )
    taken = _parameters(auto.MODEL_MAPPING.get(type(config), None), "forward")
    if not {"input_ids", "attention_mask"} <= taken:
        raise InputError(
            f"the architecture {kind!r} does not take token ids and a mask of padding: choose one "
            "that reads texts so, such as 'bert' or 'roberta'."
        )


def backbone_options(config: Any) -> dict[str, Any]:
    """Return the arguments that leave out a pooler, whose weights would never learn."""
    made = library().models.auto.modeling_auto.MODEL_MAPPING[type(config)]
    return {"add_pooling_layer": False} if "add_pooling_layer" in _parameters(made) else {}


def _parameters(made: Any, method: str = "__init__") -> set[str]:
    found = made[0] if isinstance(made, tuple) else made
    return set() if found is None else set(inspect.signature(getattr(found, method)).parameters)


def rows_of(network: Any) -> int:
    """Return how many tokens a network knows: the rows of its first table."""
    try:
        return int(network.get_input_embeddings().weight.shape[0])
    except (NotImplementedError, AttributeError):
        raise InputError(
            f"the architecture {network.config.model_type!r} has no table of tokens: choose one "
            "that reads tokens, such as 'bert' or 'roberta'."
        ) from None


def padding_of(config: Any, rows: int, of_tokenizer: int | None = None) -> int:
    """Return the number that fills up short texts.

    Networks that write texts often have none; the end of a text does as well, for what fills up
    is not looked at.
    """
    end = getattr(config, "eos_token_id", None)
    end = end[0] if isinstance(end, list) and end else end
    told = (getattr(config, "pad_token_id", None), of_tokenizer, end)
    return next((n for n in told if isinstance(n, int) and 0 <= n < rows), rows - 1)


def positions_of(network: nn.Module, config: Any) -> int | None:
    """Return how many tokens of a text a network can read; None for any number.

    A learned table of positions has so many rows, less those that RoBERTa and its kin keep in
    front; else the config says what it was trained for.
    """
    found = [
        part.num_embeddings - _rows_in_front(part)
        for name, part in network.named_modules()
        if isinstance(part, nn.Embedding) and _is_of_positions(name)
    ]
    told = getattr(config, "max_position_embeddings", None)
    if not found and isinstance(told, int) and told > 0:
        found = [told]
    return min(found, default=None)


def _is_of_positions(name: str) -> bool:
    own = name.rpartition(".")[2]
    return "pos" in own or own == "wpe"


def _rows_in_front(table: nn.Embedding) -> int:
    before = 0 if table.padding_idx is None else table.padding_idx + 1
    return max(before, int(getattr(table, "offset", 0)))


def _no_network(kind: str, error: Exception) -> InputError:
    return InputError(
        f"architecture does not describe a network of kind {kind!r}: {reason_of(error)}."
    )


def reason_of(error: BaseException) -> str:
    """Return the first line of an error, cut short, without a full stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines[:2])[:160].rstrip(". ")
    return text or type(error).__name__
