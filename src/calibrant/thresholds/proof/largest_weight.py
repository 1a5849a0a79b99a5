"""The most that a row could weigh: a promise made with weights rests on it, and says so."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError
from calibrant.inputs import FloatArray

if TYPE_CHECKING:
    from calibrant.thresholds.operating_point import OperatingPoint

__all__ = ["LargestWeight", "check_largest", "largest_of", "naming", "provided"]

_SETTING = "largest_weight"
_REMEDY = "; give {} where a row could weigh more"


@dataclass(frozen=True)
class LargestWeight:
    """The most that any row could weigh, in this sample or another.

    Rows of the heaviest kind are the rarest ones, so a sample may have none of them and nothing in
    it would tell. Only the design of the sample knows the limit.

    Parameters
    ----------
    value : the weight
    seen : whether the design was not asked, and this is merely the largest weight given
    alike : whether all rows weigh the same

    Examples
    --------
    >>> LargestWeight(20.0, seen=True).condition
    'no row could weigh more than 20, the largest seen'
    >>> LargestWeight(20.0).note is None
    True
    """

    value: float
    seen: bool = False
    alike: bool = False

    @property
    def condition(self) -> str:
        """What must be true for the promise to hold."""
        return f"no row could weigh more than {self.value:.6g}{', the largest seen' * self.seen}"

    @property
    def note(self) -> str | None:
        """What a user should be told who has not given the limit."""
        if not self.seen:
            return None
        if self.alike:
            told = "All weights are alike, so the rows count as drawn with equal chances"
        else:
            told = (
                f"The largest weight among these rows, {self.value:.6g}, is taken for the largest "
                "that the sampling design allows"
            )
        return f"{told}{_REMEDY.format(_SETTING)}."


def largest_of(weights: FloatArray | None, given: float | None) -> LargestWeight | None:
    """Return what limits the weights of rows; None where rows have none."""
    if weights is None:
        return None
    most = float(weights.max())
    return LargestWeight(
        most if given is None else float(given), given is None, float(weights.min()) == most
    )


def provided(condition: str | None) -> str:
    """Return the end of a sentence that holds under a condition, or under none.

    Examples
    --------
    >>> f"It holds{provided('no row could weigh more than 20')}."
    'It holds, if no row could weigh more than 20.'
    """
    return "" if condition is None else f", if {condition}"


def naming(point: OperatingPoint, setting: str | None) -> OperatingPoint:
    """Return a point whose notes call the limit as its user does."""
    new = "" if setting is None else _REMEDY.format(setting)
    notes = (note.replace(_REMEDY.format(_SETTING), new) for note in point.notes)
    return replace(point, notes=tuple(notes))


def check_largest(given: Any, weights: FloatArray | None, *, name: str = _SETTING) -> None:
    """Refuse a limit without weights, or one that a weight exceeds."""
    if given is None:
        return
    if weights is None:
        raise InputError(f"{name} is given without weights: give both, or neither.")
    most = float(weights.max())
    if (
        isinstance(given, bool)
        or not isinstance(given, Real)
        or not most <= float(given) < math.inf
    ):
        raise InputError(
            f"{name} must be finite and no smaller than any weight, got {given!r} where a row "
            f"weighs {most:.6g}."
        )
