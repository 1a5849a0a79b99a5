"""A pretrained transformer: what it is, checked, before and while its weights are read."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from calibrant.data.encoders.subword_encoder import SubwordEncoder
from calibrant.errors import InputError
from calibrant.models.architectures import (
    backbone_options,
    config_from,
    described,
    library,
    padding_of,
    positions_of,
    quiet,
    reason_of,
    rows_of,
    skeleton,
)
from calibrant.models.pretrained_folder import CONFIG, POOLING, folder_of, read_json, weight_files

_TOKENIZERS = (
    "tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model",
    "tokenizer.model", "spm.model", "bpe.codes",
)  # fmt: skip
_BESIDE = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt")
_MAY_BE_NEW = 0.1
"""Share of the weights, the head apart, that may be missing: more make it another network."""


@dataclass(frozen=True)
class Pretrained:
    """Description of a pretrained transformer, without its weights.

    Parameters
    ----------
    folder : folder of its files
    architecture : description of the network, as for `Transformer`
    pooling : "own" or "mean", as requested or as in the folder
    tokenizer : the text of its `tokenizer.json`
    rows : vocabulary size of the network
    positions : maximum number of tokens of a text; None for no limit
    """

    folder: Path
    architecture: Mapping[str, Any]
    pooling: str
    tokenizer: str = field(repr=False)
    rows: int
    positions: int | None

    def encoder(self, max_length: int) -> SubwordEncoder:
        """Return its encoder; `max_length` must not exceed its positions."""
        encoder = SubwordEncoder(self.tokenizer, max_length=max_length)
        encoder.check()
        if self.positions is not None and max_length > self.positions:
            raise InputError(
                f"max_length must be at most {self.positions}, the positions of the transformer in "
                f"{str(self.folder)!r}, got {max_length}."
            )
        return encoder


def read_pretrained(source: str | Path, *, pooling: str = "auto") -> Pretrained:
    """Find a transformer and check its files; of the weights only the headers are read.

    No code of the folder is run, and nothing in it is unpickled.
    """
    folder = folder_of(source)
    config = _read_config(folder)
    pooling = _pooling_of(folder) if pooling == "auto" else pooling
    for path in weight_files(folder):
        _check_header(path)
    network: Any = skeleton(config, pooling)
    rows = rows_of(network)
    tokenizer, padding = _read_tokenizer(folder, config)
    known = SubwordEncoder(tokenizer).n_tokens
    if known > rows:
        raise InputError(
            f"the tokenizer in {str(folder)!r} has token ids up to {known - 1}, but its network "
            f"has {rows} tokens (up to {rows - 1}): they do not match, so get both from one source."
        )
    architecture = {**described(config), "pad_token_id": padding_of(config, rows, padding)}
    positions = positions_of(network, config)
    return Pretrained(folder, architecture, pooling, tokenizer, rows, positions)


def load_network(pretrained: Pretrained, config: Any) -> nn.Module:
    """Return the network with the folder's weights; missing ones are initialised at random."""
    hub = library()
    kind, options = hub.AutoModelForSequenceClassification, {}
    if pretrained.pooling == "mean":
        kind, options = hub.AutoModel, backbone_options(config)
    with quiet():
        try:
            network, loading_info = kind.from_pretrained(
                str(pretrained.folder),
                config=config,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
                **options,
            )
        except Exception as error:  # of the file, of torch, of the library
            raise InputError(
                f"the weights in {str(pretrained.folder)!r} cannot be read ({reason_of(error)}): "
                "get a fresh copy."
            ) from error
    _check_loaded(network, loading_info, pretrained.folder)
    network.config._name_or_path = ""  # saved networks must not contain local paths
    for part in network.modules():
        if hasattr(part, "name_or_path"):
            part.name_or_path = ""
    loaded: nn.Module = network.float()
    return loaded


def fingerprint(source: str | Path) -> str:
    """Return a 16-character hash of the files of a transformer, without its name."""
    folder = folder_of(source)
    names = (CONFIG, POOLING, *_TOKENIZERS, *_BESIDE)
    paths = [folder / name for name in names if (folder / name).is_file()]
    digest = hashlib.sha256()
    for path in (*paths, *weight_files(folder)):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return digest.hexdigest()[:16]


def _read_config(folder: Path) -> Any:
    """Return the config of a folder; one that is not a transformer or needs code is an error."""
    if (folder / "adapter_config.json").is_file():
        raise InputError(
            f"the folder {str(folder)!r} holds an adapter, a part of a model: merge it into its "
            "model with peft's merge_and_unload(), save that, and name its folder."
        )
    if not (folder / CONFIG).is_file():
        raise InputError(
            f"the folder {str(folder)!r} has no {CONFIG}, so it is not a transformer: name a "
            "folder written by save_pretrained of the transformers library."
        )
    content = read_json(folder / CONFIG)
    if "auto_map" in content and content.get("model_type") not in library().CONFIG_MAPPING:
        raise InputError(
            f"the model in {str(folder)!r} asks to run its own code (auto_map in {CONFIG}), which "
            "is not allowed: choose a model whose architecture the transformers library has."
        )
    if "quantization_config" in content:
        raise InputError(
            f"the weights in {str(folder)!r} are quantised (quantization_config in {CONFIG}), "
            "which cannot be trained: choose the model that they were made from."
        )
    try:
        return config_from(content, 2)
    except InputError as error:
        raise InputError(f"{CONFIG} in {str(folder)!r}: {error}") from error


def _pooling_of(folder: Path) -> str:
    """Return "mean" if the folder configures mean pooling of sentences, else "own"."""
    path = folder / POOLING
    content = read_json(path) if path.is_file() else {}
    mean = content.get("pooling_mode_mean_tokens") or content.get("pooling_mode") == "mean"
    return "mean" if mean else "own"


def _check_header(path: Path) -> None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            file.keys()
    except (OSError, ValueError, SafetensorError) as error:
        raise InputError(
            f"{path.name} in {str(path.parent)!r} is damaged ({reason_of(error)}): get a fresh "
            "copy."
        ) from error


def _read_tokenizer(folder: Path, config: Any) -> tuple[str, int | None]:
    """Return the tokenizer of a folder as the text of a tokenizer.json, and its padding id.

    The transformers library converts other tokenizer files.
    """
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        raise InputError(
            f"the folder {str(folder)!r} holds no tokenizer (tokenizer.json or vocab.txt): save it "
            "there too, with save_pretrained of the tokenizer."
        )
    with quiet():
        try:
            tokenizer = library().AutoTokenizer.from_pretrained(
                str(folder), config=config, local_files_only=True, trust_remote_code=False
            )
            backend = tokenizer.backend_tokenizer if tokenizer.is_fast else None
            if backend is not None:
                backend.no_padding()
                backend.enable_truncation(256, direction=tokenizer.truncation_side)
                return str(backend.to_str()), tokenizer.pad_token_id
        except Exception as error:  # the tokenizers library raises bare exceptions
            raise InputError(
                f"the tokenizer in {str(folder)!r} cannot be read ({reason_of(error)}): get a "
                "fresh copy, with its tokenizer.json."
            ) from error
    raise InputError(
        f"the tokenizer in {str(folder)!r} has no fast form (tokenizer.json), which is the one "
        "that is read: choose another model."
    )


def _check_loaded(network: Any, loading_info: Mapping[str, Any], folder: Path) -> None:
    """Raise `InputError` for weights of another network; head and pooler may be missing.

    Names come with or without the prefix of the body, depending on the library's version.
    """
    front = f"{network.base_model_prefix}."
    wanted = {name.removeprefix(front) for name, _ in network.base_model.named_parameters()}
    wanted = {name for name in wanted if ".pooler." not in f".{name}"}
    other = f"the weights in {str(folder)!r} are of another network than {CONFIG} there"
    mismatched = sorted(loading_info["mismatched_keys"], key=lambda item: str(item[0]))
    for name, shape, needed in mismatched:
        if name.removeprefix(front) in wanted:
            raise InputError(
                f"{other}: {name!r} has shape {tuple(shape)}, not {tuple(needed)}; get both from "
                "one source."
            )
    lacking = sorted(wanted & {name.removeprefix(front) for name in loading_info["missing_keys"]})
    if len(lacking) > _MAY_BE_NEW * len(wanted):
        raise InputError(
            f"{other}: {len(lacking)} of {len(wanted)} are missing, such as {lacking[0]!r}; get "
            "both from one source."
        )
    if lacking:
        warnings.warn(
            f"the weights in {str(folder)!r} lack {len(lacking)} of {len(wanted)} that the network "
            f"has, such as {lacking[0]!r}: those are initialised at random.",
            UserWarning,
            stacklevel=4,
        )
