"""Input scores of a bundle: logits or probabilities, never guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from calibrant.calibrators.base.rows import two_columns
from calibrant.convert import probs_from_logits
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, as_logits, as_probs

Kind = Literal["logits", "probs"]


@dataclass(frozen=True)
class ModelScores:
    """Checked scores of a model, with columns in the order of the bundle's classes.

    `array` is (n,) for the second of two classes, or (n, K).
    """

    kind: Kind
    array: FloatArray

    @classmethod
    def from_input(cls, classes: Sequence[Any], *, logits: Any = None, probs: Any = None) -> Self:
        """Check logits or probs against the classes; named columns may have any order."""
        if (logits is None) == (probs is None):
            raise InputError("give either logits or probs of the rows to decide on.")
        kind: Kind = "logits" if probs is None else "probs"
        array = as_logits(logits) if kind == "logits" else as_probs(probs)
        # Contiguous, so that sums over classes round as in the selection of a point.
        scores = cls(kind, np.ascontiguousarray(array, dtype=np.float64))
        shape = array.shape
        if (2 if len(shape) == 1 else shape[1]) != len(classes):
            raise InputError(
                f"the bundle has {len(classes)} classes, but the {scores.kind} have shape "
                f"{shape}: give one column per class (for two classes, the second is enough)."
            )
        columns = _named_columns(logits if probs is None else probs, kind)
        if columns is None:
            return scores
        return scores.reorder_columns(
            class_positions(classes, columns, owners=("the bundle", "the table"))
        )

    def reorder_columns(self, order: Sequence[int]) -> Self:
        """Return the scores with reordered columns."""
        if list(order) == list(range(len(order))):
            return self
        return replace(self, array=np.ascontiguousarray(self.matrix[:, list(order)]))

    @property
    def matrix(self) -> FloatArray:
        """The scores as (n, K)."""
        if self.array.ndim == 2:
            return self.array
        if self.kind == "logits":
            return two_columns(self.array)
        return np.column_stack([1.0 - self.array, self.array])

    @property
    def probs(self) -> FloatArray:
        """Uncalibrated probabilities (n, K)."""
        return self.matrix if self.kind == "probs" else probs_from_logits(self.matrix)


def class_positions(
    wanted: Sequence[Any], available: Sequence[Any], *, owners: tuple[str, str]
) -> list[int]:
    """Return the position of each wanted class among others, compared as text.

    `owners` names the owners of both lists of classes, for messages.
    """
    names, others = [str(name) for name in wanted], [str(name) for name in available]
    same = "use the same classes for both"
    if len(names) != len(others):
        raise InputError(
            f"{owners[0]} has {len(names)} classes, but {owners[1]} has {len(others)}: {same}."
        )
    unknown = [name for name in names if name not in others]
    if unknown:
        raise InputError(
            f"{owners[0]} has the class '{unknown[0]}', which {owners[1]} does not have: {same}."
        )
    return [others.index(name) for name in names]


def _named_columns(values: Any, kind: str) -> list[str] | None:
    """Return the classes of a table whose columns are all named like `logit_<class>`."""
    names = getattr(values, "column_names", getattr(values, "columns", ()))
    start = f"{kind[:-1]}_"
    classes = [n.removeprefix(start) for n in names if isinstance(n, str) and n.startswith(start)]
    return classes if classes and len(classes) == len(names) else None
