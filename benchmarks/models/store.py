"""Results of single runs: a JSON record and its arrays, one pair for each data set and seed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CACHE", "RunFolder"]

CACHE = Path(__file__).parents[2] / "runs" / "models"
"""Where runs are saved; git ignores it."""


@dataclass(frozen=True)
class RunFolder:
    """What was measured for one data set and seed, by side: "peers", "command", "families" ..."""

    path: Path

    @classmethod
    def of(cls, size: str, name: str, seed: int) -> RunFolder:
        """Return the folder of a data set and a seed."""
        return cls(CACHE / size / name / str(seed))

    def has(self, side: str, digest: str) -> bool:
        """Return whether a side was measured on these splits."""
        return self.record(side).get("digest") == digest

    def record(self, side: str) -> dict[str, Any]:
        """Return the record of a side, empty where it was not measured."""
        file = self.path / f"{side}.json"
        if not file.exists():
            return {}
        record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return record

    def arrays(self, side: str) -> dict[str, NDArray[Any]]:
        """Return the arrays of a side."""
        with np.load(self.path / f"{side}.npz", allow_pickle=False) as file:
            return dict(file)

    def save(self, side: str, record: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """Save a side; its record is written last, so that half a side counts as none."""
        self.path.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(self.path / f"{side}.npz", **arrays)
        draft = self.path / f"{side}.json.part"
        draft.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        os.replace(draft, self.path / f"{side}.json")
