"""The rows of a study: read, cleaned, and divided into splits that do one job each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.splits import SplitPart, Splits
from calibrant.inputs import FloatArray, IntArray

__all__ = ["OUTSIDE", "Inputs", "SplitRows", "StudyRows"]

Inputs: TypeAlias = list[str] | pa.Table | NDArray[np.uint8]
"""What a model reads: texts, a table, or images (n, H, W, C)."""

OUTSIDE = -1
"""Code of a row that belongs to no class."""

_ORDER = ("train", "steer", "choice", "log_test", "calibrate", "test", "out_of_scope")
"""Splits as they are told: in the order in which a study needs them."""


@dataclass(frozen=True)
class SplitRows:
    """The rows of one split.

    Parameters
    ----------
    inputs : texts, a table, or images
    codes : (n,) place of each row's class, `OUTSIDE` for rows of no class
    weights : (n,) inverse inclusion probabilities, or None
    places : (n,) position of each row in its file, from 0; None where there is no file
    """

    inputs: Inputs
    codes: IntArray
    weights: FloatArray | None = None
    places: IntArray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which rows belong to a class."""
        return np.asarray(self.codes != OUTSIDE)

    @property
    def scored(self) -> tuple[IntArray, FloatArray | None]:
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
    sources : for "logs" and "golden" their rows
    splits : which rows have which job
    files : hashes of the files that were read
    notes : sentences about rows that were left out
    cut : what cut a continuous label into classes, as `TargetCut.to_dict`; None where none was
    """

    kind: str
    classes: tuple[Any, ...]
    sources: Mapping[str, SplitRows]
    splits: Splits
    files: Mapping[str, str]
    notes: tuple[str, ...] = ()
    cut: Mapping[str, Any] | None = None
    _taken: dict[str, SplitRows] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, name: str) -> SplitRows:
        """Return the rows of a split, by its name."""
        if name not in self._taken:
            part = getattr(self.splits, name)
            self._taken[name] = taken(self.sources[part.source], part.ids)
        return self._taken[name]

    @property
    def compared_on(self) -> str:
        """The split that candidates are compared on: choice; steer where there is only one."""
        return "choice" if len(self.splits.choice) else "steer"

    def in_files(self) -> Splits:
        """Return the splits as positions in the files, from 0, rows that were left out counted."""

        def moved(part: SplitPart) -> SplitPart:
            places = self.sources[part.source].places if len(part) else None
            return part if places is None else SplitPart(part.source, places[part.ids])

        return Splits(**{name: moved(part) for name, part in self.splits.parts().items()})

    def labels(self, codes: IntArray) -> NDArray[Any]:
        """Return the class names of rows that have one."""
        return named(self.classes)[codes]

    def sizes(self) -> dict[str, dict[str, Any]]:
        """Count the rows of every split that has some, by class."""
        found: dict[str, dict[str, Any]] = {}
        for name in _ORDER:
            part = getattr(self.splits, name)
            if not len(part.ids):
                continue
            codes = self.sources[part.source].codes[part.ids]
            counts = np.bincount(codes[codes != OUTSIDE], minlength=len(self.classes))
            by_class = {str(c): int(n) for c, n in zip(self.classes, counts, strict=True)}
            outside = int((codes == OUTSIDE).sum())
            found[name] = {"source": part.source, "rows": len(codes), "classes": by_class}
            found[name] |= {"out_of_scope": outside} if outside else {}
        return found


def taken(rows: SplitRows, places: IntArray) -> SplitRows:
    """Return the rows at these places."""
    if isinstance(rows.inputs, list):
        inputs: Any = [rows.inputs[place] for place in places]
    elif isinstance(rows.inputs, np.ndarray):
        inputs = rows.inputs[places]
    else:
        inputs = rows.inputs.take(pa.array(places))
    weights = None if rows.weights is None else rows.weights[places]
    own = None if rows.places is None else rows.places[places]
    return SplitRows(inputs, rows.codes[places], weights, own)


def named(classes: Sequence[Any]) -> NDArray[Any]:
    """Return class names as an array of their own type."""
    same = len({type(name) for name in classes}) == 1
    if same:
        return np.asarray(list(classes))
    out = np.empty(len(classes), dtype=object)
    out[:] = list(classes)
    return out
