"""Checkpoints of a run: one after every epoch, so that a killed run goes on to the same bit."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from calibrant.errors import InputError
from calibrant.training.batches import Rows
from calibrant.training.options import TrainingOptions
from calibrant.training.tensor_file import bytes_of, read_state, write_state

__all__ = ["Checkpoints", "fingerprint_of"]

_BEST = "best.safetensors"
_KEPT = 2  # the newest, and the one before in case the newest is damaged
_FREE = ("device", "devices")  # options that may change from one start to the next


class Checkpoints:
    """The checkpoints of one run in a folder; without a folder nothing is kept.

    `best.safetensors` holds the weights of the best epoch, `epoch-0007.safetensors` everything
    needed to go on after that epoch. The best weights are written first: a run killed in between
    repeats the epoch and writes the same again.

    Parameters
    ----------
    folder : made if it is not there; None to keep nothing
    fingerprint : what must be the same for a run to be gone on with
    """

    def __init__(self, folder: str | Path | None, fingerprint: Mapping[str, Any]) -> None:
        self.folder = None if folder is None else Path(folder)
        self.fingerprint = dict(fingerprint)

    def save(self, epoch: int, state: Mapping[str, Any]) -> None:
        """Save the state after an epoch, and let go of older ones."""
        if self.folder is None:
            return
        write_state(self._path(epoch), {"fingerprint": self.fingerprint, **state})
        for old in self._saved()[:-_KEPT]:
            old.unlink(missing_ok=True)

    def save_best(self, weights: Mapping[str, Tensor]) -> None:
        """Save the weights of the best epoch so far."""
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_state(self.folder / _BEST, dict(weights))

    def newest(self) -> dict[str, Any] | None:
        """Return the newest state, or None where the run begins; refuse that of another run."""
        saved = self._saved()
        if not saved:
            return None
        state: dict[str, Any] = read_state(saved[-1])
        for name, here in self.fingerprint.items():
            there = state["fingerprint"].get(name)
            if there != here:
                raise InputError(
                    f"the folder {self.folder} holds a run with {name} {there!r}, not {here!r}: "
                    "choose another folder, or delete it to begin anew."
                )
        return state

    def best(self) -> dict[str, Tensor]:
        """Return the weights of the best epoch."""
        assert self.folder is not None
        weights: dict[str, Tensor] = read_state(self.folder / _BEST)
        return weights

    def _path(self, epoch: int) -> Path:
        assert self.folder is not None
        return self.folder / f"epoch-{epoch:04d}.safetensors"

    def _saved(self) -> list[Path]:
        if self.folder is None or not self.folder.is_dir():
            return []
        return sorted(self.folder.glob("epoch-*.safetensors"), key=lambda path: int(path.stem[6:]))


def fingerprint_of(
    options: TrainingOptions, model: nn.Module, loss: nn.Module, splits: Mapping[str, Rows]
) -> dict[str, Any]:
    """Return what makes a run this run: options, model, loss, and a checksum of the rows."""
    found = {name: value for name, value in options.to_dict().items() if name not in _FREE}
    shapes = [(name, list(value.shape)) for name, value in model.state_dict().items()]
    found["model"] = f"{type(model).__name__} {zlib.crc32(repr(shapes).encode()):08x}"
    found["loss"] = " ".join(repr(loss).split())
    for name, rows in splits.items():
        found[f"{name} rows"] = f"{len(rows)} {_checksum(rows):08x}"
    return found


def _checksum(rows: Rows) -> int:
    found = 0
    for _, inputs, labels in rows.batches(65_536):
        for part in (*inputs, labels):
            found = zlib.crc32(bytes_of(part), found)
    return found
