"""The scores that a bundle gets: logits or probabilities, never guessed which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from calibrant.calibrators.base.rows import two_columns
from calibrant.convert import probs_from_logits
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, as_logits, as_probs

__all__ = ["GivenScores", "places_of"]

Kind = Literal["logits", "probs"]


@dataclass(frozen=True)
class GivenScores:
    """Checked scores of a model, their columns in the order of the bundle's classes.

    Parameters
    ----------
    kind : what `array` holds
    array : (n,) of the second of two classes, or (n, K)
    """

    kind: Kind
    array: FloatArray

    @classmethod
    def of(cls, classes: Sequence[Any], *, logits: Any = None, probs: Any = None) -> Self:
        """Check one of both against the classes; named columns may come in any order."""
        if (logits is None) == (probs is None):
            raise InputError("give either logits or probs of the rows to decide on.")
        kind: Kind = "logits" if probs is None else "probs"
        array = as_logits(logits) if kind == "logits" else as_probs(probs)
        # In one block of memory, so that sums over classes round as when a point was chosen.
        made = cls(kind, np.ascontiguousarray(array, dtype=np.float64))
        shape = array.shape
        if (2 if len(shape) == 1 else shape[1]) != len(classes):
            raise InputError(
                f"the bundle is about {len(classes)} classes, but the {made.kind} have shape "
                f"{shape}: give one column for each class (of two classes, the second will do)."
            )
        columns = _named_columns(logits if probs is None else probs, kind)
        if columns is None:
            return made
        return made.in_order(places_of(classes, columns, called=("the bundle", "the table")))

    def in_order(self, order: Sequence[int]) -> Self:
        """Return the scores with their columns in another order."""
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
        """The model's own probabilities (n, K)."""
        return self.matrix if self.kind == "probs" else probs_from_logits(self.matrix)


def places_of(wanted: Sequence[Any], among: Sequence[Any], *, called: tuple[str, str]) -> list[int]:
    """Return where each wanted class stands among others; names are compared as text.

    `called` names what the wanted classes and the others belong to.

    Examples
    --------
    >>> places_of(["a", "b"], ["b", "a"], called=("the point", "the calibrator"))
    [1, 0]
    """
    names, others = [str(name) for name in wanted], [str(name) for name in among]
    same = "both must be about the same classes"
    if len(names) != len(others):
        raise InputError(
            f"{called[0]} is about {len(names)} classes, but {called[1]} about {len(others)}: "
            f"{same}."
        )
    unknown = [name for name in names if name not in others]
    if unknown:
        raise InputError(
            f"{called[0]} is about the class '{unknown[0]}', which {called[1]} does not have: "
            f"{same}."
        )
    return [others.index(name) for name in names]


def _named_columns(values: Any, kind: str) -> list[str] | None:
    """Return the classes that all columns of a table are called after: `logit_<class>`."""
    names = getattr(values, "column_names", getattr(values, "columns", ()))
    start = f"{kind[:-1]}_"
    found = [n.removeprefix(start) for n in names if isinstance(n, str) and n.startswith(start)]
    return found if found and len(found) == len(names) else None
