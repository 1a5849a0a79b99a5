"""Save nested state in one safetensors file: tensors, and the rest as JSON, without pickle."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from calibrant.errors import TrainingError
from calibrant.files.atomic_write import write_atomically

__all__ = ["read_state", "tensor_bytes", "write_state"]


_DTYPES = {
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.bool,
}  # fmt: skip


def write_state(path: Path, state: Any) -> None:
    """Write nested dicts, lists, tensors and scalars atomically.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "state.safetensors"
    >>> write_state(path, {"step": 3, "weights": [torch.ones(2)]})
    >>> read_state(path)
    {'step': 3, 'weights': [tensor([1., 1.])]}
    """
    tensors: dict[str, Tensor] = {}
    layout = json.dumps(_pack_value(state, tensors))
    metadata = {"layout": layout, "crc": _crc(tensors, layout)}
    with write_atomically(path, name="checkpoint") as draft:
        try:
            save_file(tensors, draft, metadata=metadata)
        except SafetensorError as error:  # also raised for a full disk
            raise TrainingError(
                f"the checkpoint {path} cannot be written ({_reason(error)}): free some space, or "
                "choose another folder."
            ) from error
        with draft.open("rb+") as file:  # flush to disk before the rename
            os.fsync(file.fileno())


def read_state(path: Path, remedy: str = "delete it to start over") -> Any:
    """Read the state that `write_state` wrote; a damaged file raises `TrainingError`."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        layout = metadata["layout"]
        if _crc(tensors, layout) != metadata["crc"]:
            raise ValueError("its checksum is wrong")
        return _unpack_value(json.loads(layout), tensors)
    except (OSError, KeyError, ValueError, SafetensorError) as error:
        raise TrainingError(
            f"the checkpoint {path} is damaged ({_reason(error)}): {remedy}."
        ) from error


def _reason(error: Exception) -> str:
    text = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
    return text.strip().rstrip(".").splitlines()[0] if text.strip() else type(error).__name__


def _pack_value(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Replace tensors by their index, and dicts by pairs, since optimisers have integer keys."""
    if isinstance(value, Tensor):
        if value.dtype not in _DTYPES:
            raise TrainingError(f"a checkpoint cannot hold a tensor of {value.dtype}.")
        name = str(len(tensors))
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, dict):
        return {"pairs": [[key, _pack_value(part, tensors)] for key, part in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_pack_value(part, tensors) for part in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TrainingError(f"a checkpoint cannot hold a {type(value).__name__}.")


def _unpack_value(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_unpack_value(part, tensors) for part in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    return {key: _unpack_value(part, tensors) for key, part in value["pairs"]}


def _crc(tensors: dict[str, Tensor], layout: str) -> str:
    checksum = zlib.crc32(layout.encode())
    for name in sorted(tensors):
        checksum = zlib.crc32(tensor_bytes(tensors[name]), checksum)
    return f"{checksum:08x}"


def tensor_bytes(tensor: Tensor) -> Any:
    """Return the bytes of a tensor, for a checksum."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy() if len(flat) else b""
