"""Checkpoints of a run, written after epochs, so that a killed run goes on to the same bit."""

from __future__ import annotations

import re
import time
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from calibrant.errors import InputError
from calibrant.losses.describing import describe, describe_code
from calibrant.training.batches import Rows
from calibrant.training.options import TrainingOptions
from calibrant.training.tensor_file import bytes_of, read_state, write_state

__all__ = ["Checkpoints", "fingerprint_of"]

_KEPT = 2  # the newest, and the one before in case the newest is damaged
_FREE = ("device", "devices", "accumulate", "compile")
"""Options that may change from one start to the next: a step stays the same step."""
_START = "first weights"
_BRIEF = 0.25  # seconds: what is written faster is written after every epoch
_SHARE = 0.05  # of the time, at most, may go into writing what takes longer


class Checkpoints:
    """The checkpoints of one run in a folder; without a folder nothing is kept.

    `epoch-0007.safetensors` holds everything needed to go on after that epoch, and
    `best-0004.safetensors` the weights of the epoch that was best by then. A best file is written
    before the checkpoint that names it, and goes after the last one that named it, so a run that is
    killed at any moment finds both.

    Where writing takes long beside an epoch, some epochs are left out, so that writing takes at
    most a twentieth of the time; a run that is killed then repeats the epochs since.

    Parameters
    ----------
    folder : made if it is not there; None to keep nothing
    fingerprint : what must be the same for a run to be gone on with
    """

    def __init__(self, folder: str | Path | None, fingerprint: Mapping[str, Any]) -> None:
        self.folder = None if folder is None else _made(Path(folder))
        self.fingerprint = dict(fingerprint)
        self._best: int | None = None  # the best epoch that the newest checkpoint names
        self._took, self._wrote = 0.0, 0.0  # seconds that it took to write, and when that was

    @property
    def due(self) -> bool:
        """Whether it is time for another one."""
        passed = time.monotonic() - self._wrote
        return self._took < _BRIEF or self._took < _SHARE * passed

    def save(
        self, epoch: int, state: Mapping[str, Any], best: int, weights: Mapping[str, Any]
    ) -> None:
        """Save the state after an epoch, and let go of what is older.

        `best` is the best epoch so far, and `weights` are its weights.
        """
        started = time.monotonic()
        if best != self._best:
            write_state(self._path("best", best), dict(weights))
        write_state(self._path("epoch", epoch), {"fingerprint": self.fingerprint, **state})
        for old in self._saved("epoch")[:-_KEPT]:
            self._path("epoch", old).unlink(missing_ok=True)
        for old in set(self._saved("best")) - {self._best, best}:
            self._path("best", old).unlink(missing_ok=True)
        self._best, self._wrote = best, time.monotonic()
        self._took = self._wrote - started

    def newest(self) -> dict[str, Any] | None:
        """Return the newest state, or None where the run begins; refuse that of another run."""
        saved = self._saved("epoch")
        if not saved:
            return None
        path = self._path("epoch", saved[-1])
        remedy = "delete it to go on from the one before, or the folder to begin anew"
        state: dict[str, Any] = read_state(path, remedy)
        self._compare(state["fingerprint"])
        return state

    def best(self, epoch: int) -> dict[str, Any]:
        """Return the weights of the best epoch."""
        remedy = "the run cannot be gone on with, so delete the folder to begin anew"
        weights: dict[str, Any] = read_state(self._path("best", epoch), remedy)
        self._best = epoch
        return weights

    def _compare(self, there: Mapping[str, Any]) -> None:
        for name, here in self.fingerprint.items():
            if there.get(name) == here:
                continue
            if name == _START:
                warnings.warn(
                    f"the run in {self.folder} began with other weights than the model has now, "
                    "and is gone on with; choose another folder to train this model instead.",
                    stacklevel=6,
                )
                continue
            raise InputError(
                f"the folder {self.folder} holds a run with {name} {there.get(name)!r}, "
                f"not {here!r}: choose another folder, or delete it to begin anew."
            )

    def _path(self, kind: str, epoch: int) -> Path:
        assert self.folder is not None
        return self.folder / f"{kind}-{epoch:04d}.safetensors"

    def _saved(self, kind: str) -> list[int]:
        """Return the epochs that have a file; other files in the folder are left alone."""
        assert self.folder is not None or kind == "epoch"
        if self.folder is None:
            return []
        found = (re.fullmatch(rf"{kind}-(\d+)\.safetensors", p.name) for p in self.folder.iterdir())
        return sorted(int(match[1]) for match in found if match)


def fingerprint_of(
    options: TrainingOptions, model: nn.Module, loss: nn.Module, splits: Mapping[str, Rows]
) -> dict[str, Any]:
    """Return what makes a run this run: options, model, loss, and a checksum of the rows."""
    found = {name: value for name, value in options.to_dict().items() if name not in _FREE}
    state = model.state_dict()
    shapes = [(name, getattr(value, "shape", None)) for name, value in state.items()]
    found["model"] = f"{type(model).__name__} {_crc(repr(model), repr(shapes)):08x}"
    if code := describe_code(type(part) for part in model.modules()):
        found["code of the model"] = code
    found["loss"] = describe(loss)
    for name, rows in splits.items():
        changed = getattr(rows, "augmentation", "")  # what a shuffled epoch does to its rows
        found[f"{name} rows"] = f"{len(rows)} {_checksum(rows):08x} {changed}".rstrip()
    weights = (value for value in state.values() if isinstance(value, Tensor))
    found[_START] = f"{_crc(*weights):08x}"  # last: only where all else is the same is it warned of
    return found


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder {folder} cannot be made ({error.strerror or error}): choose another one."
        ) from error
    return folder


def _checksum(rows: Rows) -> int:
    found = 0
    for _, inputs, labels in rows.batches(1024):
        found = _crc(*inputs, labels, start=found)
    return found


def _crc(*parts: Tensor | str, start: int = 0) -> int:
    for part in parts:
        start = zlib.crc32(part.encode() if isinstance(part, str) else bytes_of(part), start)
    return start
