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
    """Import the transformers library, or raise `MissingExtra`."""
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
    """Silence the library's progress bars and warnings."""
    logging = library().utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def described(config: Any) -> dict[str, Any]:
    """Return a config as JSON, without paths, labels and versions."""
    return dict(_without_origin(json.loads(json.dumps(config.to_diff_dict(), default=str))))


def _without_origin(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {name: _without_origin(value) for name, value in part.items() if _is_kept(name)}
    return [_without_origin(each) for each in part] if isinstance(part, list | tuple) else part


def _is_kept(name: Any) -> bool:
    """Whether a setting describes the network; names with "_" are internal to the library."""
    return name not in (*_DROPPED, *_HOW) and not str(name).startswith("_")


def config_from(architecture: Mapping[str, Any], n_classes: int) -> Any:
    """Return the library's config object; an unknown architecture raises `InputError`."""
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
    settings = {name: value for name, value in architecture.items() if name != "model_type"}
    with quiet():
        try:
            config = hub.AutoConfig.for_model(kind, **_without_origin(settings))
            config.num_labels = n_classes
        except Exception as error:  # every architecture checks its numbers in its own way
            raise _no_network(kind, error) from error
    config.use_cache = False  # useless for classification, and takes memory
    return config


def _check_kind(kind: str) -> None:
    """Raise `InputError` for architectures not only for texts: they may download weights.

    Text architectures have a head for sequence classification or language modelling.
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
        config_class = hub.CONFIG_MAPPING[kind]
        taken = _parameters(auto.MODEL_MAPPING.get(config_class, None), "forward")
        other = [name for name in taken for part in _OTHER_INPUTS if part in name]
        for_texts = not other and hub.AutoConfig not in config_class.sub_configs.values()
    if not for_texts:
        raise InputError(
            f"the architecture {kind!r} is not only for texts, or downloads parts of itself: "
            "choose one that reads texts, such as 'bert' or 'roberta'."
        )


def _check_parts(part: Any) -> None:
    """Raise `InputError` for a nested part that would be downloaded."""
    if isinstance(part, Mapping):
        remote = [name for name in _FETCHED_PARTS if part.get(name)]
        remote += ["backbone"] if isinstance(part.get("backbone"), str) else []
        if remote:
            raise InputError(
                f"architecture names {remote[0]!r}, a part that would be downloaded, which is not "
                "allowed: choose a complete model."
            )
    if isinstance(part, Mapping | list | tuple):
        for each in part.values() if isinstance(part, Mapping) else part:
            _check_parts(each)


def network_from(config: Any, pooling: str) -> nn.Module:
    """Build a network with initial weights: with its own head ("own") or without ("mean")."""
    hub = library()
    check_readable(config, pooling)
    with quiet():
        try:
            if pooling == "own":
                model = hub.AutoModelForSequenceClassification.from_config(config)
            else:
                model = hub.AutoModel.from_config(config, **backbone_options(config))
        except Exception as error:  # as above
            raise _no_network(config.model_type, error) from error
    network: nn.Module = model.float()
    return network


def skeleton(config: Any, pooling: str) -> nn.Module:
    """Build the network on the meta device, without weights."""
    with torch.device("meta"):
        return network_from(config, pooling)


def check_readable(config: Any, pooling: str) -> None:
    """Raise `InputError` for an architecture that cannot classify texts."""
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
    """Return the arguments that leave out a pooler, which would never be trained."""
    model_class = library().models.auto.modeling_auto.MODEL_MAPPING[type(config)]
    return {"add_pooling_layer": False} if "add_pooling_layer" in _parameters(model_class) else {}


def _parameters(model_class: Any, method: str = "__init__") -> set[str]:
    first = model_class[0] if isinstance(model_class, tuple) else model_class
    return set() if first is None else set(inspect.signature(getattr(first, method)).parameters)


def rows_of(network: Any) -> int:
    """Return the vocabulary size of a network: the rows of its input embedding."""
    try:
        return int(network.get_input_embeddings().weight.shape[0])
    except (NotImplementedError, AttributeError):
        raise InputError(
            f"the architecture {network.config.model_type!r} has no table of tokens: choose one "
            "that reads tokens, such as 'bert' or 'roberta'."
        ) from None


def padding_of(config: Any, rows: int, of_tokenizer: int | None = None) -> int:
    """Return the padding token id.

    Generative networks often have none; their end-of-text token serves as well, since padding is
    masked.
    """
    end = getattr(config, "eos_token_id", None)
    end = end[0] if isinstance(end, list) and end else end
    ids = (getattr(config, "pad_token_id", None), of_tokenizer, end)
    return next((n for n in ids if isinstance(n, int) and 0 <= n < rows), rows - 1)


def positions_of(network: nn.Module, config: Any) -> int | None:
    """Return the maximum number of tokens of a text; None for no limit.

    It is the size of the learned position embedding, without the reserved rows of RoBERTa-like
    networks, or else the value in the config.
    """
    sizes = [
        part.num_embeddings - _rows_in_front(part)
        for name, part in network.named_modules()
        if isinstance(part, nn.Embedding) and _is_of_positions(name)
    ]
    limit = getattr(config, "max_position_embeddings", None)
    if not sizes and isinstance(limit, int) and limit > 0:
        sizes = [limit]
    return min(sizes, default=None)


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
