"""The rows of a study as its peers read them: raw inputs of every split, from the same files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.row_files import read_rows
from calibrant.data.splits import Splits
from calibrant.study import StudyConfig
from calibrant.study.rows.read import read_study_rows

__all__ = ["SPLITS", "PeerRows", "digest", "read_peer_rows"]

SPLITS = ("train", "steer", "choice", "calibrate", "test")


@dataclass(frozen=True, eq=False)
class PeerRows:
    """Every split of a study: its inputs, as they are in the file, and the codes of its classes.

    Parameters
    ----------
    classes : names of the classes, in the order of their codes
    inputs : a table or a list of texts for each split
    codes : the classes for each split
    positions : of the rows in their file, for each split
    digest : of the splits, as in the study's `splits.json`
    """

    classes: tuple[Any, ...]
    inputs: Mapping[str, Any]
    codes: Mapping[str, NDArray[np.int64]]
    positions: Mapping[str, NDArray[np.int64]]
    digest: str


def read_peer_rows(config: StudyConfig) -> PeerRows:
    """Divide the rows as the study does, and read them again without its preprocessing."""
    study = read_study_rows(config)
    splits = study.to_file_positions()
    tables = {"logs": read_rows(config.data)}
    if config.golden is not None:
        tables["golden"] = read_rows(config.golden)
    parts = {name: getattr(splits, name) for name in SPLITS}
    taken = {name: tables[part.source].take(pa.array(part.ids)) for name, part in parts.items()}
    return PeerRows(
        study.classes,
        {name: _inputs(table, config) for name, table in taken.items()},
        {name: study[name].codes for name in SPLITS},
        {name: part.ids for name, part in parts.items()},
        digest(splits),
    )


def digest(splits: Splits | Path) -> str:
    """Return a short hash of the splits, or of the `splits.json` of a finished study."""
    if isinstance(splits, Path):
        splits = Splits.from_dict(json.loads(splits.read_text(encoding="utf-8")))
    ids = {name: (p.source, p.ids.tolist()) for name, p in splits.parts().items() if name in SPLITS}
    return hashlib.sha256(json.dumps(ids, sort_keys=True).encode()).hexdigest()[:16]


def _inputs(table: pa.Table, config: StudyConfig) -> pa.Table | list[str]:
    if config.text is not None:
        texts: list[str] = table[config.text].to_pylist()
        return texts
    return table.drop_columns([str(config.label), *config.drop])
