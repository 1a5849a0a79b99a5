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

__all__ = ["Pretrained", "fingerprint", "load_network", "read_pretrained"]

_TOKENIZERS = (
    "tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model",
    "tokenizer.model", "spm.model", "bpe.codes",
)  # fmt: skip
_BESIDE = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt")
_MAY_BE_NEW = 0.1
"""Share of the weights, the head apart, that may be missing: more make it another network."""


@dataclass(frozen=True)
class Pretrained:
    """What is known of a transformer before its weights are read.

    Parameters
    ----------
    folder : where its files are
    architecture : what the network is built from, as `Transformer` takes it
    pooling : "own" or "mean", as it was asked for, or as the folder has it
    tokenizer : the text of its `tokenizer.json`
    rows : how many tokens the network knows
    positions : how many tokens of a text it can read; None for any number
    """

    folder: Path
    architecture: Mapping[str, Any]
    pooling: str
    tokenizer: str = field(repr=False)
    rows: int
    positions: int | None

    def encoder(self, max_length: int) -> SubwordEncoder:
        """Return its encoder; refuse to read more tokens of a text than it can."""
        made = SubwordEncoder(self.tokenizer, max_length=max_length)
        made.check()
        if self.positions is not None and max_length > self.positions:
            raise InputError(
                f"max_length must be at most {self.positions}, the positions of the transformer in "
                f"{str(self.folder)!r}, got {max_length}."
            )
        return made


def read_pretrained(source: str | Path, *, pooling: str = "auto") -> Pretrained:
    """Find a transformer and check all but its weights, of which only the heads are looked at.

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
            f"the tokenizer in {str(folder)!r} numbers tokens up to {known - 1}, but the network "
            f"there knows {rows} (up to {rows - 1}): they do not belong together, so get both from "
            "one place."
        )
    architecture = {**described(config), "pad_token_id": padding_of(config, rows, padding)}
    positions = positions_of(network, config)
    return Pretrained(folder, architecture, pooling, tokenizer, rows, positions)


def load_network(found: Pretrained, config: Any) -> nn.Module:
    """Return the network with the folder's weights; missing ones are initialised at random."""
    hub = library()
    kind, options = hub.AutoModelForSequenceClassification, {}
    if found.pooling == "mean":
        kind, options = hub.AutoModel, backbone_options(config)
    with quiet():
        try:
            network, told = kind.from_pretrained(
                str(found.folder),
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
                f"the weights in {str(found.folder)!r} cannot be read ({reason_of(error)}): get a "
                "fresh copy."
            ) from error
    _check_loaded(network, told, found.folder)
    network.config._name_or_path = ""  # a saved network is to hold no path of this machine
    for part in network.modules():
        if hasattr(part, "name_or_path"):
            part.name_or_path = ""
    made: nn.Module = network.float()
    return made


def fingerprint(source: str | Path) -> str:
    """Return 16 letters that change when a file of a transformer does: all but its name counts."""
    folder = folder_of(source)
    names = (CONFIG, POOLING, *_TOKENIZERS, *_BESIDE)
    paths = [folder / name for name in names if (folder / name).is_file()]
    found = hashlib.sha256()
    for path in (*paths, *weight_files(folder)):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        found.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return found.hexdigest()[:16]


def _read_config(folder: Path) -> Any:
    """Return the config of a folder; refuse what is no transformer or wants code of its own."""
    if (folder / "adapter_config.json").is_file():
        raise InputError(
            f"the folder {str(folder)!r} holds an adapter, a part of a model: merge it into its "
            "model with peft's merge_and_unload(), save that, and name its folder."
        )
    if not (folder / CONFIG).is_file():
        raise InputError(
            f"the folder {str(folder)!r} holds no {CONFIG}, so it is no transformer: name a folder "
            "as save_pretrained of the transformers library writes it."
        )
    told = read_json(folder / CONFIG)
    if "auto_map" in told and told.get("model_type") not in library().CONFIG_MAPPING:
        raise InputError(
            f"the model in {str(folder)!r} asks to run code of its own (auto_map in {CONFIG}), "
            "which is never done: choose a model whose architecture the transformers library has."
        )
    if "quantization_config" in told:
        raise InputError(
            f"the weights in {str(folder)!r} are quantised (quantization_config in {CONFIG}), "
            "which cannot be trained: choose the model that they were made from."
        )
    try:
        return config_from(told, 2)
    except InputError as error:
        raise InputError(f"{CONFIG} in {str(folder)!r}: {error}") from error


def _pooling_of(folder: Path) -> str:
    """Return "mean" where a folder says that it makes vectors of sentences so, else "own"."""
    path = folder / POOLING
    told = read_json(path) if path.is_file() else {}
    return (
        "mean"
        if told.get("pooling_mode_mean_tokens") or told.get("pooling_mode") == "mean"
        else "own"
    )


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
    """Return the tokenizer of a folder as the text of a tokenizer.json, and the number that pads.

    The transformers library makes one from whatever files are there.
    """
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        raise InputError(
            f"the folder {str(folder)!r} holds no tokenizer (tokenizer.json or vocab.txt): save it "
            "there too, with save_pretrained of the tokenizer."
        )
    with quiet():
        try:
            made = library().AutoTokenizer.from_pretrained(
                str(folder), config=config, local_files_only=True, trust_remote_code=False
            )
            running = made.backend_tokenizer if made.is_fast else None
            if running is not None:
                running.no_padding()
                running.enable_truncation(256, direction=made.truncation_side)
                return str(running.to_str()), made.pad_token_id
        except Exception as error:  # the tokenizers library raises bare exceptions
            raise InputError(
                f"the tokenizer in {str(folder)!r} cannot be read ({reason_of(error)}): get a "
                "fresh copy, with its tokenizer.json."
            ) from error
    raise InputError(
        f"the tokenizer in {str(folder)!r} has no fast form (tokenizer.json), which is the one "
        "that is read: choose another model."
    )


def _check_loaded(network: Any, told: Mapping[str, Any], folder: Path) -> None:
    """Refuse weights of another network: all of them are to be there, but for head and pooler.

    Names are told with or without that of the body in front, as the library's version has it.
    """
    front = f"{network.base_model_prefix}."
    wanted = {name.removeprefix(front) for name, _ in network.base_model.named_parameters()}
    wanted = {name for name in wanted if ".pooler." not in f".{name}"}
    other = f"the weights in {str(folder)!r} are of another network than {CONFIG} there"
    for name, found, needed in sorted(told["mismatched_keys"], key=lambda each: str(each[0])):
        if name.removeprefix(front) in wanted:
            raise InputError(
                f"{other}: {name!r} has shape {tuple(found)}, not {tuple(needed)}; get both from "
                "one place."
            )
    lacking = sorted(wanted & {name.removeprefix(front) for name in told["missing_keys"]})
    if len(lacking) > _MAY_BE_NEW * len(wanted):
        raise InputError(
            f"{other}: {len(lacking)} of {len(wanted)} are missing, such as {lacking[0]!r}; get "
            "both from one place."
        )
    if lacking:
        warnings.warn(
            f"the weights in {str(folder)!r} lack {len(lacking)} of {len(wanted)} that the network "
            f"has, such as {lacking[0]!r}: those begin at random.",
            UserWarning,
            stacklevel=4,
        )
