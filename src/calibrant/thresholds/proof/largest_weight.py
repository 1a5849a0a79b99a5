"""Largest possible weight of a row, on which every promise with weights depends."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError
from calibrant.inputs import FloatArray

if TYPE_CHECKING:
    from calibrant.thresholds.operating_point import OperatingPoint

_SETTING = "largest_weight"
_REMEDY = "; give {} if a row could weigh more"


@dataclass(frozen=True)
class LargestWeight:
    """Largest weight that any row could have, in this sample or another.

    The heaviest rows are the rarest ones, so a sample may contain none of them. Only the sampling
    design determines the limit.
    """

    value: float
    # whether this is only the largest observed weight, not one given by the design
    from_sample: bool = False
    uniform: bool = False  # whether all rows have the same weight

    @property
    def condition(self) -> str:
        """Condition under which the promise holds."""
        source = ", the largest seen" if self.from_sample else ""
        return f"no row could weigh more than {self.value:.6g}{source}"

    @property
    def note(self) -> str | None:
        """Note for users who have not given the limit, or None."""
        if not self.from_sample:
            return None
        if self.uniform:
            text = "All weights are equal, so the rows count as drawn with equal probability"
        else:
            text = (
                f"The largest weight among these rows, {self.value:.6g}, is taken as the largest "
                "that the sampling design allows"
            )
        return f"{text}{_REMEDY.format(_SETTING)}."


def resolve_largest_weight(weights: FloatArray | None, limit: float | None) -> LargestWeight | None:
    """Return the largest possible weight; None if rows have no weights."""
    if weights is None:
        return None
    most = float(weights.max())
    return LargestWeight(
        most if limit is None else float(limit), limit is None, float(weights.min()) == most
    )


def condition_clause(condition: str | None) -> str:
    """Return a clause that states a condition, or an empty text."""
    return "" if condition is None else f", if {condition}"


def name_weight_setting(point: OperatingPoint, setting: str | None) -> OperatingPoint:
    """Return a point whose notes use the caller's name of the setting."""
    new = "" if setting is None else _REMEDY.format(setting)
    notes = (note.replace(_REMEDY.format(_SETTING), new) for note in point.notes)
    return replace(point, notes=tuple(notes))


def check_largest_weight(limit: Any, weights: FloatArray | None, *, name: str = _SETTING) -> None:
    """Raise `InputError` for a limit without weights, or one that a weight exceeds."""
    if limit is None:
        return
    if weights is None:
        raise InputError(f"{name} is given without weights: give both, or neither.")
    most = float(weights.max())
    if (
        isinstance(limit, bool)
        or not isinstance(limit, Real)
        or not most <= float(limit) < math.inf
    ):
        raise InputError(
            f"{name} must be finite and no smaller than any weight, got {limit!r} where a row "
            f"weighs {most:.6g}."
        )
