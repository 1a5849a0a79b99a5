"""Checkpoints of a training run, from which an interrupted run resumes bit for bit."""

from __future__ import annotations

import json
import os
import re
import time
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from calibrant.errors import InputError, TrainingError
from calibrant.files.atomic_write import write_atomically
from calibrant.losses.describing import describe, describe_code
from calibrant.training.batches import BatchRows
from calibrant.training.options import TrainingOptions

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
    metadata = {"layout": layout, "crc": _tensor_file_crc(tensors, layout)}
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
        if _tensor_file_crc(tensors, layout) != metadata["crc"]:
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


def _tensor_file_crc(tensors: dict[str, Tensor], layout: str) -> str:
    checksum = zlib.crc32(layout.encode())
    for name in sorted(tensors):
        checksum = zlib.crc32(tensor_bytes(tensors[name]), checksum)
    return f"{checksum:08x}"


def tensor_bytes(tensor: Tensor) -> Any:
    """Return the bytes of a tensor, for a checksum."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy() if len(flat) else b""


_N_CHECKPOINTS = 2  # the newest, and the one before in case the newest is damaged


_FREE = ("device", "devices", "accumulate", "compile")
"""Options that may change on resume, because they do not change the steps."""


_START = "first weights"


_BRIEF = 0.25  # seconds: a checkpoint written faster is written after every epoch


_SHARE = 0.05  # maximum share of the time spent on slower checkpoints


class Checkpoints:
    """The checkpoints of one run in a folder; without a folder nothing is saved.

    `epoch-0007.safetensors` holds everything needed to resume after that epoch, and
    `best-0004.safetensors` the weights of the best epoch so far. A best file is written before the
    checkpoint that refers to it and deleted after the last one that does, so that both exist
    whenever a run is interrupted.

    If writing is slow compared to an epoch, some epochs are skipped, so that writing takes at most
    a twentieth of the time; an interrupted run then repeats the epochs since the last checkpoint.

    Parameters
    ----------
    folder : created if it does not exist; None to save nothing
    fingerprint : values that must be equal for a run to be resumed
    """

    def __init__(self, folder: str | Path | None, fingerprint: Mapping[str, Any]) -> None:
        self.folder = None if folder is None else _make_folder(Path(folder))
        self.fingerprint = dict(fingerprint)
        self._best: int | None = None  # best epoch of the newest checkpoint
        self._took, self._wrote = 0.0, 0.0  # duration and time of the last write, in seconds

    @property
    def due(self) -> bool:
        """Whether to write a checkpoint now."""
        passed = time.monotonic() - self._wrote
        return self._took < _BRIEF or self._took < _SHARE * passed

    def save(
        self, epoch: int, state: Mapping[str, Any], best: int, weights: Mapping[str, Any]
    ) -> None:
        """Save the state after an epoch, and delete older checkpoints.

        `best` is the best epoch so far, and `weights` are its weights.
        """
        started = time.monotonic()
        if best != self._best:
            write_state(self._path("best", best), dict(weights))
        write_state(self._path("epoch", epoch), {"fingerprint": self.fingerprint, **state})
        for old in self._saved("epoch")[:-_N_CHECKPOINTS]:
            self._path("epoch", old).unlink(missing_ok=True)
        for old in set(self._saved("best")) - {self._best, best}:
            self._path("best", old).unlink(missing_ok=True)
        self._best, self._wrote = best, time.monotonic()
        self._took = self._wrote - started

    def newest(self) -> dict[str, Any] | None:
        """Return the newest state, or None for a new run; another run raises `InputError`."""
        saved = self._saved("epoch")
        if not saved:
            return None
        path = self._path("epoch", saved[-1])
        remedy = "delete it to resume from the one before, or delete the folder to start over"
        state: dict[str, Any] = read_state(path, remedy)
        self._compare(state["fingerprint"])
        return state

    def best(self, epoch: int) -> dict[str, Any]:
        """Return the weights of the best epoch."""
        remedy = "the run cannot be resumed, so delete the folder to start over"
        weights: dict[str, Any] = read_state(self._path("best", epoch), remedy)
        self._best = epoch
        return weights

    def _compare(self, saved: Mapping[str, Any]) -> None:
        for name, current in self.fingerprint.items():
            if saved.get(name) == current:
                continue
            if name == _START:
                warnings.warn(
                    f"the run in {self.folder} is resumed, although it started with other weights "
                    "than the model has now; choose another folder to train this model instead.",
                    stacklevel=6,
                )
                continue
            raise InputError(
                f"the folder {self.folder} holds a run with {name} {saved.get(name)!r}, "
                f"not {current!r}: choose another folder, or delete it to start over."
            )

    def _path(self, kind: str, epoch: int) -> Path:
        assert self.folder is not None
        return self.folder / f"{kind}-{epoch:04d}.safetensors"

    def _saved(self, kind: str) -> list[int]:
        """Return the epochs that have a file."""
        assert self.folder is not None or kind == "epoch"
        if self.folder is None:
            return []
        names = (path.name for path in self.folder.iterdir())
        matches = (re.fullmatch(rf"{kind}-(\d+)\.safetensors", name) for name in names)
        return sorted(int(match[1]) for match in matches if match)


def fingerprint_run(
    options: TrainingOptions, model: nn.Module, loss: nn.Module, splits: Mapping[str, BatchRows]
) -> dict[str, Any]:
    """Return what identifies a run: options, model, loss, and checksums of the rows."""
    prints = {name: value for name, value in options.to_dict().items() if name not in _FREE}
    state = model.state_dict()
    shapes = [(name, getattr(value, "shape", None)) for name, value in state.items()]
    prints["model"] = f"{type(model).__name__} {_crc(repr(model), repr(shapes)):08x}"
    if code := describe_code(type(part) for part in model.modules()):
        prints["code of the model"] = code
    prints["loss"] = describe(loss)
    for name, rows in splits.items():
        augmentation = getattr(rows, "augmentation", "")
        prints[f"{name} rows"] = f"{len(rows)} {_checksum(rows):08x} {augmentation}".rstrip()
    weights = (value for value in state.values() if isinstance(value, Tensor))
    prints[_START] = f"{_crc(*weights):08x}"  # last: a warning, if everything else is equal
    return prints


def _make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder {folder} cannot be created ({error.strerror or error}): choose another."
        ) from error
    return folder


def _checksum(rows: BatchRows) -> int:
    checksum = 0
    for _, inputs, labels in rows.batches(1024):
        checksum = _crc(*inputs, labels, start=checksum)
    return checksum


def _crc(*parts: Tensor | str, start: int = 0) -> int:
    for part in parts:
        start = zlib.crc32(part.encode() if isinstance(part, str) else tensor_bytes(part), start)
    return start
