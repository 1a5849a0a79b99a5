"""The rows of a study, divided into splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.table_columns import Table
from calibrant.data.splits import SplitPart, Splits
from calibrant.inputs import FloatArray, IntArray

Inputs: TypeAlias = list[str] | Table | NDArray[np.uint8]
"""What a model reads: texts, a table, or images (n, H, W, C)."""

OUTSIDE = -1
"""Code of a row that belongs to no class."""

_ORDER = ("train", "steer", "choice", "log_test", "calibrate", "test", "out_of_scope")
"""Splits in the order in which they are reported."""


@dataclass(frozen=True)
class SplitRows:
    """The rows of one split.

    Parameters
    ----------
    inputs : texts, a table, or images
    codes : (n,) class code of each row, `OUTSIDE` for out-of-scope rows
    weights : (n,) inverse inclusion probabilities, or None
    positions : (n,) position of each row in its file, from 0; None without a file
    """

    inputs: Inputs
    codes: IntArray
    weights: FloatArray | None = None
    positions: IntArray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Mask of the rows that belong to a class."""
        return np.asarray(self.codes != OUTSIDE)

    @property
    def codes_and_weights(self) -> tuple[IntArray, FloatArray | None]:
        """Codes and weights of the rows that belong to a class."""
        inside = self.inside
        return self.codes[inside], None if self.weights is None else self.weights[inside]


@dataclass(frozen=True)
class StudyRows:
    """All rows of a study, each in one split.

    Parameters
    ----------
    kind : "text", "table" or "image"
    classes : names of the classes, in the order of their codes
    sources : the rows of "logs" and "golden"
    splits : the rows of each split
    files : hashes of the input files
    notes : sentences about rows that were left out
    cut : the cut of a numeric label into classes, as `TargetCut.to_dict`; None without one
    """

    kind: str
    classes: tuple[Any, ...]
    sources: Mapping[str, SplitRows]
    splits: Splits
    files: Mapping[str, str]
    notes: tuple[str, ...] = ()
    cut: Mapping[str, Any] | None = None
    _cache: dict[str, SplitRows] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, name: str) -> SplitRows:
        """Return the rows of a split, by its name."""
        if name not in self._cache:
            part = getattr(self.splits, name)
            self._cache[name] = take_rows(self.sources[part.source], part.ids)
        return self._cache[name]

    @property
    def compared_on(self) -> str:
        """Split that candidates are compared on: choice, or steer for a single candidate."""
        return "choice" if len(self.splits.choice) else "steer"

    def to_file_positions(self) -> Splits:
        """Return the splits as positions in the files, from 0, counting rows left out."""

        def convert_part(part: SplitPart) -> SplitPart:
            positions = self.sources[part.source].positions if len(part) else None
            return part if positions is None else SplitPart(part.source, positions[part.ids])

        return Splits(**{name: convert_part(part) for name, part in self.splits.parts().items()})

    def labels(self, codes: IntArray) -> NDArray[Any]:
        """Return the class names of in-scope rows."""
        return class_array(self.classes)[codes]

    def sizes(self) -> dict[str, dict[str, Any]]:
        """Count the rows of every non-empty split, by class."""
        sizes: dict[str, dict[str, Any]] = {}
        for name in _ORDER:
            part = getattr(self.splits, name)
            if not len(part.ids):
                continue
            codes = self.sources[part.source].codes[part.ids]
            counts = np.bincount(codes[codes != OUTSIDE], minlength=len(self.classes))
            by_class = {str(c): int(n) for c, n in zip(self.classes, counts, strict=True)}
            outside = int((codes == OUTSIDE).sum())
            sizes[name] = {"source": part.source, "rows": len(codes), "classes": by_class}
            sizes[name] |= {"out_of_scope": outside} if outside else {}
        return sizes


def take_rows(rows: SplitRows, indices: IntArray) -> SplitRows:
    """Return the rows at these indices."""
    if isinstance(rows.inputs, list):
        inputs: Any = [rows.inputs[i] for i in indices]
    elif isinstance(rows.inputs, np.ndarray):
        inputs = rows.inputs[indices]
    else:
        inputs = rows.inputs.take(indices)
    weights = None if rows.weights is None else rows.weights[indices]
    positions = None if rows.positions is None else rows.positions[indices]
    return SplitRows(inputs, rows.codes[indices], weights, positions)


def class_array(classes: Sequence[Any]) -> NDArray[Any]:
    """Return class names as an array of their type, or of objects if types differ."""
    same = len({type(name) for name in classes}) == 1
    if same:
        return np.asarray(list(classes))
    out = np.empty(len(classes), dtype=object)
    out[:] = list(classes)
    return out
