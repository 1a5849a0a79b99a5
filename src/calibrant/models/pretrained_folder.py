"""The folder of a pretrained transformer, local or downloaded from a hub."""

from __future__ import annotations

import difflib
import json
import re
from pathlib import Path
from typing import Any, TypeGuard

from calibrant.errors import InputError
from calibrant.models.architectures import library, quiet, reason_of
from calibrant.models.registry import models

CONFIG = "config.json"
POOLING = "1_Pooling/config.json"
_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_PICKLED = (
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "tf_model.h5",
    "flax_model.msgpack",
)
_NEEDED = [
    CONFIG, POOLING, _WEIGHTS, _INDEX, "model-*-of-*.safetensors", "tokenizer.json",
    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt",
    "vocab.json", "merges.txt", "*.model",
]  # fmt: skip
"""Files that are downloaded from a hub: no pickles, and no copies for other libraries."""

_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def is_source(model: Any) -> TypeGuard[str | Path]:
    """Whether a value names a transformer: a folder or a hub id.

    Names of registered networks, and misspellings of them, do not.

    Examples
    --------
    >>> [is_source(name) for name in ("distilbert-base-uncased", "bilstm", "bilstmm", 3)]
    [True, False, False, False]
    """
    if isinstance(model, Path):
        return True
    known = models()
    if not isinstance(model, str) or model in known:
        return False
    return bool(_is_folder(model) or not difflib.get_close_matches(model, known, n=1))


def folder_of(source: str | Path) -> Path:
    """Return the folder of a transformer, downloading it from a hub if needed."""
    if _is_folder(source):
        return Path(source)
    if _is_file(source):
        raise InputError(
            f"model names the file {str(source)!r}, but a transformer is a folder with "
            f"{CONFIG}, a tokenizer and {_WEIGHTS}: name that folder."
        )
    if isinstance(source, str) and _ID.fullmatch(source):
        return _download(source)
    raise InputError(
        f"model names the folder {str(source)!r}, which is not there: check the path, or give the "
        "id of a model on a hub, such as 'distilbert-base-uncased'."
    )


def _download(source: str) -> Path:
    """Download a model from a hub, or return its cached folder."""
    library()
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import RepositoryNotFoundError

    what = f"model {source!r} is neither a network of Calibrant nor a folder here"
    try:
        with quiet():
            folder = Path(snapshot_download(source, allow_patterns=_NEEDED))
    except RepositoryNotFoundError as error:
        raise InputError(
            f"{what}, and the hub has no such model, or not for you: check its spelling, or name a "
            "folder."
        ) from error
    except Exception as error:  # of the network, the hub, the disk: all mean that it is not here
        raise InputError(
            f"{what}, and it could not be fetched from a hub ({reason_of(error)}): download it "
            "where there is a connection, and name its folder."
        ) from error
    return folder


def weight_files(folder: Path) -> list[Path]:
    """Return the weight files; a folder without weights, or with pickles, raises `InputError`.

    Only the index of sharded weights is read.
    """
    if (folder / _WEIGHTS).is_file():
        return [folder / _WEIGHTS]
    if (folder / _INDEX).is_file():
        return _list_shards(folder)
    pickled = next((name for name in _PICKLED if (folder / name).is_file()), None)
    if pickled is not None and pickled.startswith("pytorch"):
        raise InputError(
            f"the weights in {str(folder)!r} are a pickle ({pickled}), which can run any code and "
            "is never opened: if you trust it, convert it once with transformers' "
            f"AutoModel.from_pretrained({str(folder)!r}).save_pretrained({str(folder)!r})."
        )
    other = "" if pickled is None else f" that torch reads (only {pickled})"
    raise InputError(
        f"the folder {str(folder)!r} holds no weights{other}: {_WEIGHTS} is missing; fetch it too, "
        "or name another folder."
    )


def _list_shards(folder: Path) -> list[Path]:
    parts = read_json(folder / _INDEX).get("weight_map")
    names = sorted(set(parts.values())) if isinstance(parts, dict) else []
    if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise InputError(
            f"{_INDEX} in {str(folder)!r} is damaged (it lists no files): get a fresh copy."
        )
    lacking = next((name for name in names if not (folder / name).is_file()), None)
    if lacking is not None:
        raise InputError(
            f"the folder {str(folder)!r} lacks {lacking!r}, which {_INDEX} lists: fetch it too."
        )
    return [folder / name for name in names]


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; a damaged file raises `InputError`."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path.name} in {str(path.parent)!r} is damaged ({reason_of(error)}): get a fresh "
            "copy."
        ) from error
    if not isinstance(content, dict):
        raise InputError(
            f"{path.name} in {str(path.parent)!r} is damaged (it holds no JSON object): get a "
            "fresh copy."
        )
    return content


def _is_folder(source: str | Path) -> bool:
    try:
        return Path(source).is_dir()
    except (OSError, ValueError):  # too long, or with a NUL
        return False


def _is_file(source: str | Path) -> bool:
    try:
        return Path(source).is_file()
    except (OSError, ValueError):
        return False
